// The lines of timers.overview.

#include <vector>

#include "api/enums.hpp"
#include "api/result_set.hpp"
#include "engine/overview.hpp"
#include "pg/clock.hpp"
#include "store/values.hpp"

namespace {

pg::Value number(const engine::Figure& figure) { return {Int64GetDatum(figure.value)}; }

pg::Value instant(core::Instant at) {
    return at == core::never || at == core::distant_past ? pg::null_value : store::instant_value(at);
}

// How long ago.
pg::Value age(core::Instant at, core::Instant now) {
    if (at == core::never) return pg::null_value;
    return {pg::call([=] {
        return DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(now), TimestampTzGetDatum(at));
    })};
}

// The columns that say at least, at the latest, or about.
pg::Value inexact(const engine::LaneOverview& lane) {
    const struct {
        const char* column;
        const engine::Figure& figure;
    } figures[] = {{"scheduled", lane.scheduled}, {"due", lane.due},           {"oldest_overdue", lane.oldest},
                   {"firing", lane.firing},       {"stuck", lane.stuck},       {"resuming", lane.resuming},
                   {"dead", lane.dead},           {"next_due", lane.next}};
    std::vector<std::string_view> columns;
    for (const auto& [column, figure] : figures)
        if (!figure.exact) columns.push_back(column);
    return store::text_array(columns);
}

}  // namespace

TIMERS_SET_FUNCTION(timers_overview) {
    const core::Instant now = pg::wall_clock();
    for (const engine::LaneOverview& lane : engine::look_over(now)) {
        const pg::Value columns[] = {
            store::text_value(lane.name),
            api::delivery_value(lane.delivery),
            {BoolGetDatum(lane.paused)},
            number(lane.scheduled),
            number(lane.due),
            age(lane.oldest.value, now),
            number(lane.firing),
            number(lane.stuck),
            number(lane.resuming),
            number(lane.dead),
            instant(lane.next.value),
            inexact(lane),
            lane.explanation != nullptr ? store::text_value(lane.explanation) : pg::null_value,
        };
        api::put(result, columns);
    }
}
