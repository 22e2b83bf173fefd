// schedule(), schedule_in(), schedule_once(), cancel(), cancel_correlation().

#include <string>

#include "api/enums.hpp"
#include "api/errors.hpp"
#include "api/function.hpp"
#include "engine/lane_registry.hpp"
#include "engine/transaction_end.hpp"
#include "pg/clock.hpp"
#include "store/schedule.hpp"
#include "store/values.hpp"

namespace {

// The arguments that every scheduling function begins with; `fire_at` differs.
store::Request request_from(const api::Arguments& arguments, Datum fire_at) {
    store::Request request{};
    request.timer_id = arguments.required(0, "timer_id");
    request.process_manager = arguments.process_manager(1);
    request.correlation_id = arguments.correlation_id(2);
    request.fire_at = fire_at;
    request.payload = arguments.required(4, "payload");
    return request;
}

store::Outcome schedule_in_lane(const store::Request& request, store::RearmMode mode) {
    engine::ensure_lane(api::view_of(request.process_manager));
    // Before any row is locked: whatever becomes of the statement, the transaction's end is told.
    engine::notes().touch();
    return store::schedule(request, mode);
}

}  // namespace

TIMERS_FUNCTION(timers_schedule) {
    const store::Request request = request_from(arguments, arguments.instant(3, "fire_at"));
    return api::outcome_value(schedule_in_lane(request, api::mode_of(arguments.required(5, "mode"))));
}

TIMERS_FUNCTION(timers_schedule_in) {
    const Datum delay = arguments.required(3, "delay");
    // The clock of this moment, not of the transaction's start.
    const core::Instant now = pg::wall_clock();
    const Datum fire_at =
        pg::call([=] { return DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(now), delay); });
    api::check_finite(DatumGetTimestampTz(fire_at), "delay");
    return api::outcome_value(
        schedule_in_lane(request_from(arguments, fire_at), api::mode_of(arguments.required(5, "mode"))));
}

TIMERS_FUNCTION(timers_schedule_once) {
    const store::Request request = request_from(arguments, arguments.instant(3, "fire_at"));
    return {BoolGetDatum(schedule_in_lane(request, store::RearmMode::keep) == store::Outcome::inserted)};
}

TIMERS_FUNCTION(timers_cancel) {
    const Datum timer_id = arguments.required(0, "timer_id");
    engine::notes().touch();
    return api::change_value(store::cancel(timer_id), timer_id);
}

TIMERS_FUNCTION(timers_cancel_correlation) {
    const Datum process_manager = arguments.process_manager(0);
    const Datum correlation_id = arguments.correlation_id(1);
    engine::notes().touch();
    return {Int64GetDatum(store::cancel_correlation(process_manager, correlation_id))};
}
