// schedule(), schedule_in(), schedule_once(), schedule_many(), debounce(), cancel(), cancel_correlation().

#include <string_view>
#include <vector>

#include "api/enums.hpp"
#include "api/errors.hpp"
#include "api/requests.hpp"
#include "api/result_set.hpp"
#include "engine/lane_registry.hpp"
#include "engine/transaction_end.hpp"
#include "pg/clock.hpp"
#include "store/schedule_many.hpp"
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
    // The clock of this moment, not of the transaction's start.
    const Datum fire_at = TimestampTzGetDatum(arguments.after(pg::wall_clock(), 3, "delay"));
    return api::outcome_value(
        schedule_in_lane(request_from(arguments, fire_at), api::mode_of(arguments.required(5, "mode"))));
}

TIMERS_FUNCTION(timers_schedule_once) {
    const store::Request request = request_from(arguments, arguments.instant(3, "fire_at"));
    return {BoolGetDatum(schedule_in_lane(request, store::RearmMode::keep) == store::Outcome::inserted)};
}

TIMERS_FUNCTION(timers_debounce) {
    const core::Instant now = pg::wall_clock();
    const core::Instant fire_at = core::later_by(now, arguments.span(3, "quiet"));
    if (fire_at < now) api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, "quiet", "must not be negative");
    if (!arguments.is_null(5)) arguments.positive_span(5, "max_wait");
    const store::Request request = request_from(arguments, TimestampTzGetDatum(fire_at));
    engine::ensure_lane(api::view_of(request.process_manager));
    engine::notes().touch();
    return api::outcome_value(store::debounce(request, arguments.optional(5)));
}

TIMERS_SET_FUNCTION(timers_schedule_many) {
    const std::vector<store::Request> requests = api::requests_of(arguments.required(0, "requests"));
    const store::RearmMode mode = api::mode_of(arguments.required(1, "mode"));
    std::string_view last;
    for (const store::Request& request : requests) {
        const std::string_view lane = api::view_of(request.process_manager);
        if (lane == last) continue;
        api::check_process_manager(lane, "requests");
        engine::ensure_lane(lane);
        last = lane;
    }
    engine::notes().touch();
    const std::vector<store::Outcome> outcomes = store::schedule_many(requests, mode);

    // The outcomes' values, looked up once.
    pg::Value values[4];
    for (const auto outcome : {store::Outcome::inserted, store::Outcome::rearmed, store::Outcome::kept,
                               store::Outcome::too_late})
        values[static_cast<int>(outcome)] = api::outcome_value(outcome);
    for (std::size_t i = 0; i < requests.size(); i++) {
        const pg::Value row[] = {{requests[i].timer_id}, values[static_cast<int>(outcomes[i])]};
        api::put(result, row);
    }
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
