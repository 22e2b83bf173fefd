// The name under which a firing's event id is derived: UUIDv5(timer id, this name).
#pragma once

#include <cstddef>

#include "core/instant.hpp"

namespace core {

// Room for any 64-bit count of microseconds shifted to 1970, its sign, and the closing zero.
inline constexpr std::size_t event_name_size = 24;

// Writes `fire_at` as decimal microseconds since 1970-01-01 00:00:00 UTC and returns the number of characters.
// The count is 1970's, as every language has it; near the end of the server's range it exceeds 64 bits.
std::size_t write_event_name(Instant fire_at, char (&name)[event_name_size]);

}  // namespace core
