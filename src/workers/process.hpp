// What every background process of ours does the same way.
#pragma once

#include "pg/server.hpp"

namespace workers {

// Signal handlers, then signals: SIGTERM ends the process at the next CHECK_FOR_INTERRUPTS, also while a commit
// waits for a synchronous standby; SIGHUP marks the configuration for reading.
void unblock_signals();

// Once per loop, with no transaction open: end if asked to, answer barriers, read the configuration.
void handle_interrupts();

// A filled-in BackgroundWorker of this library.
BackgroundWorker describe_worker(const char* name, const char* type, const char* entry_point, int restart_seconds);

}  // namespace workers
