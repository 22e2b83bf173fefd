// The lanes as a session sees them that scans them itself: their settings, and where a scan of each may begin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lane_book.hpp"
#include "engine/waking.hpp"

namespace engine {

struct SessionLane {
    std::string name;
    core::LaneSettings settings;
    ScanStart start;
    core::Instant stored = core::distant_past;    // the safe mark
    bool drained = false;                         // by the pass under way

    // The mark, lowered by what this transaction has written.
    core::Instant from() const;
};

// In the order of names.
std::vector<SessionLane> lanes_with_timers();
// Those that have settings only, too.
std::vector<SessionLane> all_lanes();
// The one of that name, whether it has anything or not.
std::vector<SessionLane> lanes_named(std::string_view name);

}  // namespace engine
