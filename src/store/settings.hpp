// The server's settings (durable_timers.*) that stand for what a process manager leaves open.
#pragma once

#include <cstdint>

namespace store {

// To be called from _PG_init.
void define_settings();

// Microseconds.
std::int64_t default_lease();
// Timers that one transaction of the dispatcher fires at most.
int batch_size();

}  // namespace store
