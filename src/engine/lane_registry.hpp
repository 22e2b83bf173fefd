// A process manager's row of settings appears with its first timer, in the same transaction.
#pragma once

#include <string_view>

namespace engine {

// Sees to it that `lane` has a row in timers.process_manager, without ever waiting: where another transaction is
// adding it at this moment, the dispatcher makes sure in the end.
void ensure_lane(std::string_view lane);

// For whoever is about to write the lane's row, and can wait: nobody else adds it until the transaction ends, and nobody
// waits for this one either.
void lock_lane(std::string_view lane);

// Whether the row being written right now is such a row, with nothing but defaults: no setting changed by it.
bool adding_defaults() noexcept;

// The transaction, or a savepoint of it, ended: what it ensured may be gone.
void forget_ensured_lanes() noexcept;

// Rows may have been deleted.
void forget_committed_lanes();

}  // namespace engine
