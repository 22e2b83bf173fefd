// take_events().

#include "api/result_set.hpp"
#include "store/outbox.hpp"

TIMERS_SET_FUNCTION(timers_take_events) {
    const std::int32_t most = arguments.positive_count(0, "max_events");
    if (!arguments.is_null(1)) arguments.process_manager(1);
    store::take_events(most, arguments.optional(1), result.rows);
}
