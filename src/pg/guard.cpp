#include "pg/guard.hpp"

#include <cstdlib>

namespace pg {

namespace detail {

void throw_caught(MemoryContext context) {
    // Not among what a subtransaction's end takes along.
    MemoryContextSwitchTo(TopTransactionContext != nullptr ? TopTransactionContext : context);
    ErrorData* error = CopyErrorData();
    MemoryContextSwitchTo(context);
    FlushErrorState();
    throw ServerError(error);
}

void raise_caught(ErrorData* error, const char* foreign) {
    if (error != nullptr) ReThrowError(error);
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg_internal("C++ exception: %s", foreign));
    std::abort();  // ereport(ERROR) does not return, which its macro cannot tell the compiler at every level
}

Subtransaction::Subtransaction() {
    call([] { BeginInternalSubTransaction(nullptr); });
    MemoryContextSwitchTo(context_);
}

void Subtransaction::end(bool kept) {
    MemoryContextSwitchTo(context_);
    call([=] {
        if (kept)
            ReleaseCurrentSubTransaction();
        else
            RollbackAndReleaseCurrentSubTransaction();
    });
    MemoryContextSwitchTo(context_);
    CurrentResourceOwner = owner_;
}

ErrorData* data_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const ServerError& caught) {
        return caught.data();
    } catch (...) {
        return nullptr;
    }
}

Failure failure_of(ErrorData* data) {
    Failure failure{data->sqlerrcode, data->message != nullptr ? data->message : "unknown error"};
    FreeErrorData(data);
    return failure;
}

}  // namespace detail

void raise(int sqlstate, const std::string& message, const char* detail, const char* hint) {
    const char* text = message.c_str();
    call([=] {
        ereport(ERROR, errcode(sqlstate), errmsg("%s", text), detail != nullptr ? errdetail("%s", detail) : 0,
                hint != nullptr ? errhint("%s", hint) : 0);
    });
    std::abort();
}

}  // namespace pg
