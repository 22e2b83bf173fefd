// The pass over due timers: one statement scans the due index from each lane's mark, locks what nobody else
// holds, and moves it on. What is due fires in the order of its key, greatest(wake_at, fire_at); what was
// postponed beyond the scan gets its wake_at set to fire_at.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lane_book.hpp"
#include "pg/statement.hpp"

namespace store {

// One lane's part in a pass.
struct LaneTask {
    std::string_view lane;
    core::Instant start;                 // scan from here
    std::int64_t share;                  // at most this many rows
    std::optional<int> max_attempts;
    std::int64_t lease = 0;              // claims only, microseconds
    std::string_view channel = {};       // notify only
};

struct PassClock {
    core::Instant due;      // fires what has fire_at up to here
    core::Instant bound;    // scans up to here
    core::Instant now;      // the wall clock, for what is written down
};

// Each takes hold of at most `most` rows over all tasks and returns a scan for each task, in order; with `identity`,
// nothing at all unless the database is armed under it. A lane that is paused or delivered otherwise in the snapshot of
// the scan is refused.

// Fires into the outbox.
std::vector<core::LaneScan> fire_into_outbox(const std::vector<LaneTask>& tasks, const PassClock& clock,
                                             std::int64_t most, std::optional<std::string_view> identity = {});

// Claims for notify delivery and sends the notifications.
std::vector<core::LaneScan> fire_by_notify(const std::vector<LaneTask>& tasks, const PassClock& clock,
                                           std::int64_t most, std::optional<std::string_view> identity = {});

// Who claims, and by which delivery: external or handler.
struct Claimer {
    core::Delivery delivery;
    std::string_view name;
    std::optional<std::string_view> identity = {};    // as for the passes above
};

// Claims the earliest over all tasks, looking at no more than `widest` of them, and shows each to `visit`: its row, and
// the column from which on the columns of timers.claimed_timer stand.
std::vector<core::LaneScan> claim(const std::vector<LaneTask>& tasks, const PassClock& clock, std::int64_t widest,
                                  std::int64_t most, const Claimer& claimer,
                                  const std::function<void(const pg::Rows&, std::uint64_t row, int column)>& visit);

// The first row that is due cannot be fired: `error` is kept, the attempt counts, and it is tried again later, ever
// later with its attempts; at the ceiling it is dead.
void set_back(const LaneTask& task, const PassClock& clock, std::string_view error);

// How many rows of the tasks' lanes are due; their shares do not matter.
std::int64_t count_due(const std::vector<LaneTask>& tasks, const PassClock& clock);

// Per task: the next wake_at beyond `bound` at which something is scheduled, or `never`.
std::vector<core::Instant> next_wakes(const std::vector<std::string_view>& lanes, core::Instant bound);

}  // namespace store
