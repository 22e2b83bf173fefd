// A named piece of the server's shared memory, with the lock that guards it. Knows nothing of what lies in it.
#pragma once

#include <cstddef>

#include "pg/server.hpp"

namespace pg {

// To be called from _PG_init while the server preloads libraries: asks for `size` bytes of memory under `name`
// with a lock, and for room for `more` bytes that `initialize` takes itself (a ShmemInitHash, say). `initialize`
// is called in the postmaster each time shared memory is set up, with zeroed memory.
void request_shared_memory(const char* name, std::size_t size, std::size_t more,
                           void (*initialize)(void* memory, LWLock* lock));

}  // namespace pg
