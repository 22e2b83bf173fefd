#include "pg/clock.hpp"

#include <ctime>

#include "pg/guard.hpp"

namespace pg {

std::int64_t wall_clock() { return GetCurrentTimestamp(); }

std::string instant_text(std::int64_t instant) {
    return call([=] { return timestamptz_to_str(instant); });
}

std::int64_t monotonic_clock() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

}  // namespace pg
