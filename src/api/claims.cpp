// claim_due(), renew(), mark_fired(), release(), requeue_stuck(), fire_due().

#include <string>

#include "api/errors.hpp"
#include "api/function.hpp"
#include "api/result_set.hpp"
#include "engine/session_pass.hpp"
#include "engine/transaction_end.hpp"
#include "store/claims.hpp"
#include "store/values.hpp"

namespace {

// Who holds a claim, for operators to read: role and process.
std::string caller() {
    const char* role = pg::call([] { return GetUserNameFromId(GetSessionUserId(), false); });
    return std::string(role) + "/" + std::to_string(MyProcPid);
}

}  // namespace

TIMERS_SET_FUNCTION(timers_claim_due) {
    std::optional<std::string_view> lane;
    if (!arguments.is_null(0)) lane = api::view_of(arguments.process_manager(0));
    const std::int32_t most = arguments.positive_count(1, "max_timers");
    std::optional<std::int64_t> lease;
    if (!arguments.is_null(2)) lease = arguments.positive_span(2, "lease");
    const core::Instant as_of = DatumGetTimestampTz(arguments.instant(3, "as_of"));
    const std::string name = caller();
    engine::claim_due({lane, as_of, most, lease, {core::Delivery::external, name}},
                      [&](const pg::Rows& rows, std::uint64_t row, int column) {
                          api::put_row(result, rows, row, column);
                      });
}

TIMERS_FUNCTION(timers_renew) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum token = arguments.required(1, "claim_token");
    if (!arguments.is_null(2)) arguments.positive_span(2, "lease");
    const store::Renewed renewed = store::renew(timer_id, token, arguments.optional(2));
    api::require_held(renewed.held, timer_id);
    return {TimestampTzGetDatum(renewed.lease_until)};
}

TIMERS_FUNCTION(timers_mark_fired) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum event_id = arguments.required(1, "event_id");
    engine::notes().touch();
    if (arguments.is_null(2)) return api::change_value(store::complete_unclaimed(timer_id, event_id), timer_id);
    api::require_held(store::complete(timer_id, event_id, arguments.required(2, "claim_token")), timer_id);
    return {BoolGetDatum(true)};
}

TIMERS_FUNCTION(timers_release) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum token = arguments.required(1, "claim_token");
    const core::Instant fire_at = DatumGetTimestampTz(arguments.instant(2, "fire_at"));
    engine::notes().touch();
    api::require_held(store::release(timer_id, token, TimestampTzGetDatum(fire_at), arguments.optional(3)), timer_id);
    return {BoolGetDatum(true)};
}

TIMERS_FUNCTION(timers_requeue_stuck) {
    if (!arguments.is_null(0)) arguments.positive_span(0, "older_than");
    const core::Instant as_of = DatumGetTimestampTz(arguments.instant(1, "as_of"));
    engine::notes().touch();
    return {Int64GetDatum(store::requeue_expired(as_of, arguments.optional(0), INT64_MAX))};
}

TIMERS_FUNCTION(timers_fire_due) {
    const core::Instant as_of = DatumGetTimestampTz(arguments.instant(0, "as_of"));
    const std::int32_t most = arguments.positive_count(1, "max_timers");
    return {Int32GetDatum(static_cast<std::int32_t>(engine::fire_due(as_of, most)))};
}
