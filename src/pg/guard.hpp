// The boundary between two error regimes: in the server an error is a longjmp, in C++ an exception. A longjmp
// must not cross a C++ frame that has a destructor to run, nor an exception a frame of the server. Hence two
// doors, and no PG_TRY anywhere else:
//
//   call(f)   C++ calls the server. A longjmp out of f is caught in the same frame, its ErrorData is copied
//             whole and thrown as ServerError. f owns nothing with a destructor and returns something
//             trivially copyable, for the longjmp skips the rest of it.
//   entry(f)  The server calls C++. Every exception is caught, and raised as a server error *after* the catch
//             block has ended, when no exception is alive any more; SQLSTATE, detail and hint are kept.
//
// attempt(f) is the one place that swallows an error: f runs in a subtransaction of its own, which an error
// rolls back. Which errors are swallowed, the caller says; else all but a request to cancel. keep_if(f) swallows
// none: f runs in a subtransaction that is rolled back unless f returns true.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "pg/server.hpp"

namespace pg {

// A server error on its way through C++ frames. The ErrorData lives until the transaction ends; outside of one, as
// long as the memory context that was current at the call() that caught it.
class ServerError : public std::exception {
public:
    explicit ServerError(ErrorData* data) : data_(data) {}
    ErrorData* data() const { return data_; }
    const char* what() const noexcept override { return data_->message != nullptr ? data_->message : "unknown error"; }

private:
    ErrorData* data_;
};

namespace detail {
[[noreturn]] void throw_caught(MemoryContext context);
[[noreturn]] void raise_caught(ErrorData* error, const char* foreign);

// The server's error state that a caught longjmp has to restore.
struct Handlers {
    sigjmp_buf* jump = PG_exception_stack;
    ErrorContextCallback* callbacks = error_context_stack;
    void restore() const {
        PG_exception_stack = jump;
        error_context_stack = callbacks;
    }
};
}  // namespace detail

template <typename Body>
std::invoke_result_t<Body&> call(Body&& body) {
    using Result = std::invoke_result_t<Body&>;
    static_assert(std::is_void_v<Result> || std::is_trivially_copyable_v<Result>);
    const MemoryContext context = CurrentMemoryContext;
    const detail::Handlers handlers;
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        handlers.restore();
        detail::throw_caught(context);
    }
    PG_exception_stack = &here;
    if constexpr (std::is_void_v<Result>) {
        body();
        handlers.restore();
    } else {
        Result result = body();
        handlers.restore();
        return result;
    }
}

template <typename Body>
std::invoke_result_t<Body&> entry(Body&& body) {
    ErrorData* error = nullptr;
    char foreign[256];
    try {
        return body();
    } catch (const ServerError& caught) {
        error = caught.data();
    } catch (const std::exception& caught) {
        strlcpy(foreign, caught.what(), sizeof foreign);
    } catch (...) {
        strlcpy(foreign, "unknown exception", sizeof foreign);
    }
    detail::raise_caught(error, foreign);
}

// What is left of a swallowed error.
struct Failure {
    int sqlstate;
    std::string message;
};

namespace detail {
// A subtransaction under way; whoever began it ends it, in the same memory context and resource owner.
class Subtransaction {
public:
    Subtransaction();
    void end(bool kept);

private:
    MemoryContext context_ = CurrentMemoryContext;
    ResourceOwner owner_ = CurrentResourceOwner;
};

// What `body` throws.
template <typename Body>
std::exception_ptr thrown_by(Body&& body) {
    try {
        body();
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

// Null when it is none of the server's.
ErrorData* data_of(const std::exception_ptr& error);
Failure failure_of(ErrorData* data);
}  // namespace detail

inline bool no_cancel(int sqlstate) { return sqlstate != ERRCODE_QUERY_CANCELED; }
inline bool any_error(int) { return true; }

// Runs `body` in a subtransaction; on an error rolls it back, and returns what went wrong if `swallows(sqlstate)`. A
// termination of the process is never swallowed.
template <typename Body, typename Swallows = bool (*)(int)>
std::optional<Failure> attempt(Body&& body, Swallows&& swallows = no_cancel) {
    detail::Subtransaction subtransaction;
    const std::exception_ptr error = detail::thrown_by(body);
    subtransaction.end(!error);
    if (!error) return std::nullopt;
    ErrorData* data = detail::data_of(error);
    if (data == nullptr || data->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN || !swallows(data->sqlerrcode))
        std::rethrow_exception(error);
    return detail::failure_of(data);
}

// Runs `body` in a subtransaction that stays only if it returns true; returns what it returned.
template <typename Body>
bool keep_if(Body&& body) {
    detail::Subtransaction subtransaction;
    bool kept = false;
    const std::exception_ptr error = detail::thrown_by([&] { kept = body(); });
    subtransaction.end(kept);
    if (error) std::rethrow_exception(error);
    return kept;
}

// Raises an error of ours, through the same regime as the server's.
[[noreturn]] void raise(int sqlstate, const std::string& message, const char* detail = nullptr,
                        const char* hint = nullptr);

}  // namespace pg
