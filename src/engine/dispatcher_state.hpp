// What keeps a database's timers from firing by themselves, in words, for timers.workers and timers.overview.
#pragma once

#include "engine/shared.hpp"

namespace engine {

// The state of the dispatcher; `database` may be nullptr: it has no place, or there are none. To be asked with a copy
// rather than under the lock.
const char* dispatcher_state(const SharedDatabase* database);

// Why nothing fires in that state, and what to do about it; nullptr when it does.
const char* explanation_of(const char* state);

}  // namespace engine
