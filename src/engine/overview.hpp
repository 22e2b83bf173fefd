// What timers.overview shows: how each process manager is doing, at a cost that does not grow with the table. What
// would take too long to count says so instead of being wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/delivery.hpp"
#include "core/instant.hpp"

namespace engine {

// A number, and whether it is that and no other.
struct Figure {
    std::int64_t value = 0;
    bool exact = true;
};

struct LaneOverview {
    std::string name;
    core::Delivery delivery;
    bool paused;
    Figure scheduled;                    // not exact: an estimate, or at least
    Figure due;                          // not exact: at least, and likewise below
    Figure oldest;                       // the earliest fire_at of these; `never`: there are none
    Figure firing;
    Figure stuck;                        // firing, with a lease that is over
    Figure resuming;
    Figure dead;                         // not exact: an estimate, or at least
    Figure next;                         // the earliest fire_at ahead; not exact: at the latest
    core::Instant stored;                // the safe mark; distant_past: none
    const char* explanation;             // why nothing of it fires by itself; nullptr when it does
};

// Every lane with timers or settings, in the order of names, as of `now`.
std::vector<LaneOverview> look_over(core::Instant now);

}  // namespace engine
