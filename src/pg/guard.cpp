#include "pg/guard.hpp"

#include <cstdlib>

namespace pg {

namespace detail {

void throw_caught(MemoryContext context) {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    throw ServerError(error);
}

void raise_caught(ErrorData* error, const char* foreign) {
    if (error != nullptr) ReThrowError(error);
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg_internal("C++ exception: %s", foreign));
    std::abort();  // ereport(ERROR) does not return, which its macro cannot tell the compiler at every level
}

void begin_attempt() {
    call([] { BeginInternalSubTransaction(nullptr); });
}

void keep_attempt() {
    call([] { ReleaseCurrentSubTransaction(); });
}

Failure undo_attempt(MemoryContext context, ResourceOwner owner, ErrorData* error, bool cancels_too) {
    MemoryContextSwitchTo(context);
    if ((error->sqlerrcode == ERRCODE_QUERY_CANCELED && !cancels_too) || error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
        throw ServerError(error);
    // The ErrorData may live in a context that goes with the subtransaction.
    Failure failure{error->sqlerrcode, error->message != nullptr ? error->message : "unknown error"};
    call([] { RollbackAndReleaseCurrentSubTransaction(); });
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
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
