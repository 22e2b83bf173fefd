// What operators and workers do to timers by their ids: requeue, give up on, retry, purge. Each is one transition of the
// state machine, or none.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/retention_plan.hpp"
#include "pg/statement.hpp"
#include "store/schedule.hpp"

namespace store {

Change requeue(Datum timer_id);
Change dead_letter(Datum timer_id, Datum reason);
Change retry_dead(Datum timer_id, Datum fire_at);

// Deletes timers that ended before `before`, dead ones too if asked, and returns how many.
std::int64_t purge(Datum before, bool include_dead);

// One step of retention in a lane: of the `most` first rows from `from` up to its mark deletes those that ended before
// `before`. Waits for nobody.
core::Sweep sweep(std::string_view lane, core::Instant from, core::Instant mark, core::Instant before,
                  std::int64_t most);

}  // namespace store
