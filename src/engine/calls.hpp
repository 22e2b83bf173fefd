// Calls: how the dispatcher, which never runs user code, tells handler workers which lanes have something due, and
// how the workers share the lanes out. A called lane stays called until a worker has found it drained and nobody has
// called it since.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/shared.hpp"

namespace engine {

// The dispatcher: something is due in `lane`. At most `max_concurrent` of its timers are handled at a time (0: any
// number). Wakes an idle worker, or asks the launcher for one. False when the lane has no place in shared memory.
bool call_lane(std::string_view lane, int max_concurrent);

// A worker's life. join() is false when the database has all the workers that it may have, or is to be left.
bool join_handlers();
void leave_handlers() noexcept;
// Leaves if the database has more workers than it may have, since the setting was lowered.
bool leave_if_surplus();

// A worker's turn at a lane.
struct Turn {
    std::string lane;
    std::uint64_t calls;
};

// The next called lane that may have another worker, those that waited longest first. Without one the worker counts
// as idle from here, and its latch is set by the next call.
std::optional<Turn> take_turn();

// Whether the worker may do another timer in the same turn: no other lane waits, and its own may still have this worker.
bool turn_goes_on();

// There is more in the lane than this worker does now: see to it that another helps.
void ask_for_help();

// Ends the turn; `drained`: nothing was due when its scan began.
void end_turn(const Turn& turn, bool drained);

// How many handler workers the database has.
int handlers_at_work(const SharedDatabase& database);

// Whether another worker could be of use and may be started; asked by the launcher.
bool handler_wanted(const SharedDatabase& database);

}  // namespace engine
