#include "pg/statement.hpp"

#include <algorithm>
#include <exception>

namespace pg {

namespace {

// Sets lock_timeout until the level of settings that is returned ends, with the subtransaction at the latest.
int limit_waits() {
    constexpr int longest = 100;
    int most = std::max(std::min(longest, DeadlockTimeout / 2), 1);
    if (LockTimeout > 0) most = std::min(most, LockTimeout);
    const int level = NewGUCNestLevel();
    set_config_option("lock_timeout", psprintf("%d", most), PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
    return level;
}

}  // namespace

Session::Session() : outside_(CurrentMemoryContext), exceptions_(std::uncaught_exceptions()) {
    call([] { SPI_connect(); });
}

Session::~Session() {
    // On the way out of an error the connection is left to the abort: the ErrorData lives in its memory.
    if (std::uncaught_exceptions() == exceptions_) SPI_finish();
}

Value Rows::value(std::uint64_t row, int column) const {
    bool null = false;
    const Datum datum = SPI_getbinval(table_->vals[row], table_->tupdesc, column, &null);
    return {datum, null};
}

void Statement::prepare() {
    call([this] {
        if (plan_ != nullptr) SPI_freeplan(plan_);
        plan_ = nullptr;
        const int level = NewGUCNestLevel();
        for (const char* setting : {"enable_seqscan", "enable_bitmapscan", "enable_mergejoin", "jit"})
            set_config_option(setting, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
        SPIPlanPtr plan = SPI_prepare_cursor(text_, static_cast<int>(count_), types_, CURSOR_OPT_GENERIC_PLAN);
        if (plan == nullptr) elog(ERROR, "could not prepare a statement: %s", SPI_result_code_string(SPI_result));
        SPI_keepplan(plan);
        plan_ = plan;
        PushActiveSnapshot(GetTransactionSnapshot());
        ReleaseCachedPlan(SPI_plan_get_cached_plan(plan_), CurrentResourceOwner);
        PopActiveSnapshot();
        AtEOXact_GUC(true, level);
    });
}

SharedSnapshot::SharedSnapshot() : exceptions_(std::uncaught_exceptions()) {
    call([] {
        // What this transaction has done so far is seen, too.
        CommandCounterIncrement();
        PushActiveSnapshot(GetTransactionSnapshot());
    });
}

SharedSnapshot::~SharedSnapshot() {
    // On the way out of an error the abort does it.
    if (std::uncaught_exceptions() == exceptions_) PopActiveSnapshot();
}

Rows Statement::run(std::initializer_list<Value> values) { return execute(values, How::usual); }

Rows Statement::run_latest(std::initializer_list<Value> values) { return execute(values, How::latest); }

Rows Statement::run_as_of_caller(std::initializer_list<Value> values) { return execute(values, How::as_of_caller); }

Rows Statement::run_or_give_up(std::initializer_list<Value> values) { return execute(values, How::impatient); }

Rows Statement::execute(std::initializer_list<Value> values, How how) {
    Datum datums[most_parameters];
    char nulls[most_parameters];
    std::size_t i = 0;
    for (const Value& value : values) {
        datums[i] = value.datum;
        nulls[i] = value.null ? 'n' : ' ';
        i++;
    }
    if (plan_ == nullptr || !SPI_plan_is_valid(plan_)) prepare();
    call([&] {
        const int level = how == How::impatient ? limit_waits() : 0;
        const int outcome = how == How::latest ? SPI_execute_snapshot(plan_, datums, nulls, GetLatestSnapshot(),
                                                                      InvalidSnapshot, false, false, 0)
                                               : SPI_execute_plan(plan_, datums, nulls, how == How::as_of_caller, 0);
        if (level > 0) AtEOXact_GUC(true, level);
        if (outcome < 0) elog(ERROR, "could not run a statement: %s", SPI_result_code_string(outcome));
    });
    return {SPI_tuptable, SPI_processed};
}

OwnerRights::OwnerRights(Oid table) {
    const Oid owner = call([=] {
        HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
        if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for relation %u", table);
        const Oid role = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
        ReleaseSysCache(tuple);
        return role;
    });
    GetUserIdAndSecContext(&role_, &context_);
    SetUserIdAndSecContext(owner, context_ | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
}

OwnerRights::~OwnerRights() { SetUserIdAndSecContext(role_, context_); }

}  // namespace pg
