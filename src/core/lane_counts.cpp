#include "core/lane_counts.hpp"

namespace core {

namespace {

void count_resume(LaneCounts& counts, TimerStatus was, TimerStatus is) {
    const auto count = [&](Resume outcome) { counts.resumes[static_cast<std::size_t>(outcome)]++; };
    if (was == TimerStatus::dead && is == TimerStatus::resuming) count(Resume::claimed);
    if (was != TimerStatus::resuming) return;
    if (is == TimerStatus::fired) count(Resume::fired);
    if (is == TimerStatus::dead) count(Resume::dead);
    if (is == TimerStatus::cancelled) count(Resume::cancelled);
}

}  // namespace

void LaneCounts::add(const LaneCounts& other) {
    fired += other.fired;
    cancelled += other.cancelled;
    dead_lettered += other.dead_lettered;
    retried += other.retried;
    requeued += other.requeued;
    for (std::size_t i = 0; i < std::size(resumes); i++) resumes[i] += other.resumes[i];
    lag.add(other.lag);
    attempts.add(other.attempts);
    for (std::size_t i = 0; i < std::size(delivered); i++) delivered[i] += other.delivered[i];
    delivery_failures += other.delivery_failures;
    handler_failures += other.handler_failures;
    skipped += other.skipped;
}

void count_change(LaneCounts& counts, const TimerState& was, const TimerState& is, Instant now) {
    if (is.attempts > was.attempts) {
        // What is set back has another fire_at by now.
        counts.lag.observe(now - was.fire_at);
        counts.attempts.observe(is.attempts);
    }
    if (is.status == was.status) return;
    switch (is.status) {
        case TimerStatus::scheduled:
            if (was.status == TimerStatus::dead) counts.retried++;
            // Who gives a timer back or tries it again later sets another fire_at, or takes the attempt off.
            if (was.status == TimerStatus::firing && is.fire_at == was.fire_at && is.attempts == was.attempts)
                counts.requeued++;
            break;
        case TimerStatus::fired:
            counts.fired++;
            break;
        case TimerStatus::cancelled:
            counts.cancelled++;
            break;
        case TimerStatus::dead:
            if (was.status != TimerStatus::resuming) counts.dead_lettered++;
            break;
        default:
            break;
    }
    count_resume(counts, was.status, is.status);
}

}  // namespace core
