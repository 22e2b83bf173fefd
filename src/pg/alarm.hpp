// Sleeping to an exact instant of the wall clock, or until the latch is set. WaitLatch counts whole
// milliseconds of a monotonic clock: too coarse, and blind to a clock that is set. On Linux a timerfd on the
// wall clock ends the sleep, to the microsecond, and at once when somebody sets the clock.
#pragma once

#include <cstdint>

#include "pg/server.hpp"

namespace pg {

class Alarm {
public:
    // Once per process; lives until it exits.
    Alarm();

    // Sleeps until `instant` (microseconds as timestamptz), but no longer than `longest` microseconds. Returns
    // early when the process's latch is set, which it leaves set. A dying postmaster ends the process. Does not begin to
    // sleep when the process is to end or to read its configuration: whoever said so has set the latch, but it may have
    // been reset since.
    void sleep_until(std::int64_t instant, std::int64_t longest, uint32 wait_event);

private:
    void arm(std::int64_t instant);

    WaitEventSet* events_ = nullptr;
    int timer_ = -1;
};

}  // namespace pg
