// requeue(), dead_letter(), retry_dead(), purge(), count_due().

#include "api/errors.hpp"
#include "api/function.hpp"
#include "engine/session_pass.hpp"
#include "engine/transaction_end.hpp"
#include "store/recovery.hpp"

TIMERS_FUNCTION(timers_requeue) {
    const Datum timer_id = arguments.required(0, "timer_id");
    engine::notes().touch();
    return api::change_value(store::requeue(timer_id), timer_id);
}

TIMERS_FUNCTION(timers_dead_letter) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum reason = arguments.name(1, "reason");
    engine::notes().touch();
    return api::change_value(store::dead_letter(timer_id, reason), timer_id);
}

TIMERS_FUNCTION(timers_retry_dead) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum fire_at = arguments.instant(1, "fire_at");
    engine::notes().touch();
    return api::change_value(store::retry_dead(timer_id, fire_at), timer_id);
}

TIMERS_FUNCTION(timers_purge) {
    const Datum before = arguments.instant(0, "before");
    return {Int64GetDatum(store::purge(before, DatumGetBool(arguments.required(1, "include_dead"))))};
}

TIMERS_FUNCTION(timers_count_due) {
    return {Int64GetDatum(engine::count_due(DatumGetTimestampTz(arguments.instant(0, "as_of"))))};
}
