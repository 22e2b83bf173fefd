// What there is, lane by lane, looked at without reading what grows: the due index around the clock, the claims, the
// dead by their index, and for the rest a sample of the table. All under the caller's snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/instant.hpp"

namespace store {

// Where to look in a lane, and from there how many rows at most: behind the bound, and ahead of it.
struct LaneReach {
    std::string_view lane;
    core::Instant start;
    std::int64_t behind;
    std::int64_t ahead;
};

struct LaneLook {
    bool behind_cut = false;    // there may be more than was looked at
    std::int64_t due = 0;
    core::Instant oldest = core::never;          // the earliest fire_at of these
    std::int64_t waiting = 0;                    // scheduled, not due: postponed since they were written
    core::Instant waiting_fire = core::never;    // the earliest fire_at of these

    bool ahead_cut = false;
    std::int64_t ahead = 0;                      // scheduled
    core::Instant ahead_fire = core::never;      // the earliest fire_at of these
    core::Instant reached = core::distant_past;  // the last wake_at that was looked at
};

// A look for each lane, in order. Due is what has fire_at up to `now`; `bound` is where behind ends.
std::vector<LaneLook> look_at_lanes(const std::vector<LaneReach>& lanes, core::Instant bound, core::Instant now);

// The claims of a lane.
struct LaneClaims {
    std::int64_t firing;
    std::int64_t lapsed;      // of these, lease over
    std::int64_t resuming;
};
// Looks at `most` claims, those that lapse first; true when there may be more.
bool each_lane_claims(core::Instant now, std::int64_t most,
                      const std::function<void(std::string_view lane, const LaneClaims&)>& visit);

// Counts the dead of each lane among the `most` that died last; true when there may be more.
bool each_lane_dead(std::int64_t most, const std::function<void(std::string_view lane, std::int64_t dead)>& visit);

// Estimates by pages that lie evenly over the table, `most` of them; all of them where there are no more.
struct LaneEstimate {
    std::int64_t scheduled;
    std::int64_t dead;
};
void each_lane_estimate(std::int64_t most,
                        const std::function<void(std::string_view lane, const LaneEstimate&)>& visit);

}  // namespace store
