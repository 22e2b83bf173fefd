#include "engine/session_lanes.hpp"

#include <algorithm>
#include <map>

#include "engine/transaction_end.hpp"
#include "store/lanes.hpp"

namespace engine {

namespace {

std::vector<SessionLane> lanes_of_database(bool with_settings_only) {
    std::map<std::string, SessionLane, std::less<>> lanes;
    store::each_lane_with_timers([&](std::string_view name) { lanes[std::string(name)]; });
    store::each_lane_settings([&](std::string_view name, core::LaneSettings settings) {
        if (with_settings_only) lanes[std::string(name)];
        if (const auto found = lanes.find(name); found != lanes.end()) found->second.settings = std::move(settings);
    });
    store::each_safe_mark([&](std::string_view name, core::Instant safe_at) {
        if (const auto found = lanes.find(name); found != lanes.end()) found->second.stored = safe_at;
    });
    std::vector<SessionLane> list;
    for (auto& [name, lane] : lanes) {
        lane.name = name;
        lane.start = scan_start(name);
        list.push_back(std::move(lane));
    }
    return list;
}

}  // namespace

core::Instant SessionLane::from() const {
    const core::Instant mark = std::max(start.shared ? start.mark : core::distant_past, stored);
    return std::min(mark, notes().wake_of(name));
}

std::vector<SessionLane> lanes_with_timers() { return lanes_of_database(false); }

std::vector<SessionLane> all_lanes() { return lanes_of_database(true); }

std::vector<SessionLane> lanes_named(std::string_view name) {
    SessionLane lane{std::string(name), store::lane_settings(name).value_or(core::LaneSettings{}), {}};
    // A mark in memory is enough.
    if (const ScanStart start = scan_start(name); !start.shared || start.mark == core::distant_past)
        lane.stored = store::safe_mark(name);
    lane.start = scan_start(name);
    return {lane};
}

}  // namespace engine
