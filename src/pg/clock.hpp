// The server's clocks: the wall for due times, the monotonic one for measuring.
#pragma once

#include <cstdint>

namespace pg {

// Microseconds since 2000-01-01 UTC, as timestamptz counts.
std::int64_t wall_clock();

// Microseconds of a clock that nobody sets.
std::int64_t monotonic_clock();

}  // namespace pg
