// Calls: how the dispatcher, which never runs user code, tells handler workers which lanes have something due, and
// how the workers share the lanes out. A called lane stays called until a worker has found it drained and nobody has
// called it since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/shared.hpp"

namespace engine {

// The dispatcher: something is due in `lane`. At most `max_concurrent` of its timers are handled at a time (0: any
// number). Wakes an idle worker, or asks the launcher for one. Returns when to call again, whatever comes (a lane that
// rests gets no turn before), or nothing when the lane has no place in shared memory.
std::optional<Instant> call_lane(std::string_view lane, int max_concurrent);

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

// What the last claim of a turn came to.
enum class TurnEnd {
    claimed,
    drained,    // nothing was due when its scan began
    failed,     // it raised an error: the lane rests for a while, longer with every time in a row
};

// Ends the turn. Returns when the lane is to be called again, whatever comes.
Instant end_turn(const Turn& turn, TurnEnd end);

// How many handler workers the database has, and whether the process is one of them.
int handlers_at_work(const SharedDatabase& database);
bool is_handler(const SharedDatabase& database, int pid);

// Whether another worker could be of use and may be started; asked by the launcher.
bool handler_wanted(const SharedDatabase& database);

}  // namespace engine
