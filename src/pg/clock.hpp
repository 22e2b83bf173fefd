// The server's clocks: the wall for due times, the monotonic one for measuring.
#pragma once

#include <cstdint>
#include <string>

namespace pg {

// Microseconds since 2000-01-01 UTC, as timestamptz counts.
std::int64_t wall_clock();

// As people read it, in the time zone of the session.
std::string instant_text(std::int64_t instant);

// Microseconds of a clock that nobody sets.
std::int64_t monotonic_clock();

}  // namespace pg
