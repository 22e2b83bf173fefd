#include "pg/user_function.hpp"

#include <algorithm>
#include <climits>

#include "pg/compat.hpp"

extern "C" {
#include "parser/parse_func.h"
#include "utils/timeout.h"
}

namespace pg {

volatile sig_atomic_t user_function_runs = false;

namespace {

// How long the function may take to end once it has been interrupted.
constexpr int grace_ms = 2000;

// A function may catch the interruption and go on; it cannot catch the end of the process.
void on_overrun() {
    ProcDiePending = true;
    InterruptPending = true;
    SetLatch(MyLatch);
}

// Interrupts the body after `limit` microseconds, by the server's own statement timeout, which nothing arms in a
// background worker, and ends the process when that does not help.
template <typename Body>
void within(std::int64_t limit, Body&& body) {
    static TimeoutId overrun = MAX_TIMEOUTS;
    // However the body ends; a cancel that comes too late must not hit what follows.
    struct Disarm {
        ~Disarm() {
            user_function_runs = false;
            disable_timeout(STATEMENT_TIMEOUT, false);
            disable_timeout(overrun, false);
            QueryCancelPending = false;
        }
    };
    const int milliseconds = static_cast<int>(std::min<std::int64_t>((limit + 999) / 1000, INT_MAX - grace_ms));
    call([=] {
        if (overrun == MAX_TIMEOUTS) overrun = RegisterTimeout(USER_TIMEOUT, on_overrun);
        enable_timeout_after(STATEMENT_TIMEOUT, milliseconds);
        enable_timeout_after(overrun, milliseconds + grace_ms);
    });
    const Disarm disarm;
    user_function_runs = true;
    if (QueryCancelPending) InterruptPending = true;
    body();
}

}  // namespace

Oid find_function(const std::string& name, Oid argument) {
    const char* text = name.c_str();
    return call([=] {
        List* names = name_list(text);
        return names == NIL ? InvalidOid : LookupFuncName(names, 1, &argument, true);
    });
}

std::string function_name(Oid function) {
    const char* name = call([=] {
        return quote_qualified_identifier(get_namespace_name(get_func_namespace(function)), get_func_name(function));
    });
    return name;
}

bool returns(Oid function, Oid type) {
    return call([=] {
        return get_func_prokind(function) == PROKIND_FUNCTION && get_func_rettype(function) == type &&
               !get_func_retset(function);
    });
}

Oid find_role(const std::string& name) {
    const char* text = name.c_str();
    return call([=] { return get_role_oid(text, true); });
}

Value call_as(Oid role, Oid function, Datum argument, std::int64_t limit) {
    Oid caller = InvalidOid;
    int context = 0;
    GetUserIdAndSecContext(&caller, &context);
    if (!may_execute(role, function)) {
        const std::string who = call([=] { return GetUserNameFromId(role, false); });
        raise(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied for function " + function_name(function), nullptr,
              ("Grant EXECUTE on it to \"" + who + "\".").c_str());
    }
    Value result = null_value;
    within(limit, [&] {
        call([&] {
            const int level = NewGUCNestLevel();
            SetUserIdAndSecContext(role, context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
            set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
                              0, false);
            FmgrInfo info;
            fmgr_info(function, &info);
            LOCAL_FCINFO(record, 1);
            InitFunctionCallInfoData(*record, &info, 1, InvalidOid, nullptr, nullptr);
            record->args[0].value = argument;
            record->args[0].isnull = false;
            PushActiveSnapshot(GetTransactionSnapshot());
            const Datum value = FunctionCallInvoke(record);
            PopActiveSnapshot();
            result = {value, record->isnull};
            // As if it failed: what the function has SET is not for the next one.
            AtEOXact_GUC(false, level);
            SetUserIdAndSecContext(caller, context);
        });
    });
    return result;
}

void release_session_locks() {
    call([] { LockReleaseAll(USER_LOCKMETHOD, true); });
}

}  // namespace pg
