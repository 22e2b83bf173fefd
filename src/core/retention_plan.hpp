// When and where each lane is to be swept of timers that ended long ago. A sweep walks the due index from where the last
// one stopped towards the lane's mark; what ended in order expires in order, so it stops at the first that has not.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/instant.hpp"

namespace core {

// What one step of a sweep saw.
struct Sweep {
    bool full = false;                    // it stopped at its share of rows, not at the mark
    Instant last_wake = distant_past;     // the highest wake_at seen
    Instant kept_wake = never;            // the first timer that ended but has not expired: its wake_at
    Instant kept_ended = never;           // and when it ended
};

class RetentionPlan {
public:
    // `step`: how many rows one step looks at.
    explicit RetentionPlan(std::int64_t step = 500) : step_(step) {}

    Instant due() const { return due_; }
    Instant from() const { return from_; }
    // How many rows the next step looks at.
    std::int64_t rows() const { return step_ * widening_; }

    // A step was committed. The next one comes at once while there is more, otherwise when something can have expired, and
    // no sooner than after `pause`.
    void swept(const Sweep& sweep, Instant now, std::int64_t retention, std::int64_t pause) {
        if (sweep.kept_wake != never) {
            from_ = sweep.kept_wake;
            due_ = std::max(later_by(sweep.kept_ended, retention), later_by(now, pause));
        } else {
            // Rows that stay, all with one wake_at, may fill the whole step: look behind them.
            widening_ = sweep.full && sweep.last_wake <= from_ ? std::min(widening_ * 2, widest) : 1;
            from_ = std::max(from_, sweep.last_wake);
            due_ = sweep.full ? now : later_by(now, std::max(retention, pause));
        }
    }

    // Settings changed, or it is not known what is there.
    void start_again() { *this = RetentionPlan(step_); }

private:
    static constexpr std::int64_t widest = 1 << 20;

    std::int64_t step_;
    Instant due_ = distant_past;
    Instant from_ = distant_past;
    std::int64_t widening_ = 1;
};

}  // namespace core
