// Instants and how they are counted. Plain C++: no server header, no clock; time is always an argument.
#pragma once

#include <cstdint>

namespace core {

// Microseconds since 2000-01-01 00:00:00 UTC, as the server counts timestamptz.
using Instant = std::int64_t;

// Before and after every instant that a timer can have.
inline constexpr Instant distant_past = INT64_MIN;
inline constexpr Instant never = INT64_MAX;

inline constexpr std::int64_t microsecond = 1;
inline constexpr std::int64_t millisecond = 1000 * microsecond;
inline constexpr std::int64_t second = 1000 * millisecond;
inline constexpr std::int64_t minute = 60 * second;

// From the Unix epoch to ours.
inline constexpr std::int64_t from_1970_to_2000 = 10957LL * 86400 * second;

// `instant + span`, held inside the range instead of overflowing.
constexpr Instant later_by(Instant instant, std::int64_t span) {
    Instant sum = 0;
    if (__builtin_add_overflow(instant, span, &sum)) return span > 0 ? never : distant_past;
    return sum;
}

}  // namespace core
