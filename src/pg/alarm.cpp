#include "pg/alarm.hpp"

#ifdef __linux__
#include <sys/timerfd.h>
#include <unistd.h>
#endif

#include <algorithm>

#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/guard.hpp"

namespace pg {

namespace {
constexpr std::int64_t from_1970_to_2000 = 10957LL * 86400 * 1000000;
}

Alarm::Alarm() {
#ifdef __linux__
    timer_ = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
#endif
    call([this] {
        events_ = create_wait_event_set(3);
        AddWaitEventToSet(events_, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
        AddWaitEventToSet(events_, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
        if (timer_ >= 0) AddWaitEventToSet(events_, WL_SOCKET_READABLE, timer_, nullptr, nullptr);
    });
}

void Alarm::arm(std::int64_t instant) {
#ifdef __linux__
    itimerspec at{};
    // A timer in the past or at zero would be disarmed, so never before the epoch's first microsecond.
    const std::int64_t unix_time = std::max<std::int64_t>(instant + from_1970_to_2000, 1);
    at.it_value.tv_sec = unix_time / 1000000;
    at.it_value.tv_nsec = unix_time % 1000000 * 1000;
    timerfd_settime(timer_, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, nullptr);
#else
    (void)instant;
#endif
}

void Alarm::sleep_until(std::int64_t instant, std::int64_t longest, uint32 wait_event) {
    const std::int64_t now = wall_clock();
    std::int64_t span = longest;
    if (instant <= now) return;
    call([] { CHECK_FOR_INTERRUPTS(); });
    if (ConfigReloadPending) return;
    // Not `instant - now` at once: an instant may be as far away as numbers go.
    if (instant < now + longest) span = instant - now;
    if (timer_ >= 0) arm(now + span);
    // Without a timerfd the last millisecond is rounded up; with one this is only a longer stop.
    const long timeout = static_cast<long>((span + 999) / 1000) + (timer_ >= 0 ? 1000 : 0);
    call([&] {
        WaitEvent event;
        WaitEventSetWait(events_, timeout, &event, 1, wait_event);
    });
#ifdef __linux__
    std::uint64_t expirations = 0;
    // Not readable when the latch ended the sleep; ECANCELED when the clock was set.
    if (timer_ >= 0 && read(timer_, &expirations, sizeof expirations) < 0) return;
#endif
}

}  // namespace pg
