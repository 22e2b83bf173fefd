// take_events(), lease_events(), ack_events().

#include "api/result_set.hpp"
#include "store/outbox.hpp"

TIMERS_SET_FUNCTION(timers_take_events) {
    const std::int32_t most = arguments.positive_count(0, "max_events");
    if (!arguments.is_null(1)) arguments.process_manager(1);
    store::take_events(most, arguments.optional(1), result.rows);
}

TIMERS_SET_FUNCTION(timers_lease_events) {
    const std::int32_t most = arguments.positive_count(0, "max_events");
    arguments.positive_span(1, "lease");
    if (!arguments.is_null(2)) arguments.process_manager(2);
    store::lease_events(most, arguments.required(1, "lease"), arguments.optional(2), result.rows);
}

TIMERS_FUNCTION(timers_ack_events) { return {Int64GetDatum(store::ack_events(arguments.required(0, "positions")))}; }
