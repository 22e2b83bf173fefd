// What operators and workers do to timers by their ids: requeue, give up on, retry, purge. Each is one transition of the
// state machine, or none.
#pragma once

#include "pg/statement.hpp"
#include "store/schedule.hpp"

namespace store {

Change requeue(Datum timer_id);
Change dead_letter(Datum timer_id, Datum reason);
Change retry_dead(Datum timer_id, Datum fire_at);

// Deletes timers that ended before `before`, dead ones too if asked, and returns how many.
std::int64_t purge(Datum before, bool include_dead);

}  // namespace store
