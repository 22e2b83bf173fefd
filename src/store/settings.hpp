// The server's settings (durable_timers.*) that stand for what a process manager leaves open.
#pragma once

#include <cstdint>
#include <optional>

namespace store {

// To be called from _PG_init.
void define_settings();

// Microseconds.
std::int64_t default_lease();
// How long ended timers are kept, microseconds; nothing: for ever.
std::optional<std::int64_t> default_retention();
// Timers that one scan of the dispatcher takes at most.
int batch_size();


// How long a handler may run, microseconds.
std::int64_t default_handler_timeout();

// When a handler that failed is tried again: first delay and its ceiling in microseconds, the factor in between.
struct RetryDefaults {
    std::int64_t delay;
    double factor;
    std::int64_t ceiling;
};
RetryDefaults retry_defaults();

}  // namespace store
