#include "core/pace.hpp"

#include <algorithm>

namespace core {

namespace {

constexpr std::int64_t portion_span = millisecond;
constexpr std::int64_t portion_span_alone = 10 * millisecond;
constexpr std::int64_t work_per_rest = 9;
constexpr double weight = 0.2;    // of what is new in what has been learned
constexpr double slowest = 5, fastest = 1000;
// A lane whose commits take longer than this is not waited for any earlier.
constexpr double longest_commit = 20 * millisecond;

void learn(double& known, double found) { known += weight * (found - known); }

}  // namespace

std::int64_t Pace::portion(bool alone) const {
    return static_cast<std::int64_t>(rows_per_millisecond_) * (alone ? portion_span_alone : portion_span) / millisecond;
}

void Pace::took(std::int64_t rows, std::int64_t span) {
    // The cost of a scan as such would make a small one look slow.
    if (2 * rows < portion(false)) return;
    const double found = static_cast<double>(rows) * millisecond / static_cast<double>(std::max<std::int64_t>(1, span));
    learn(rows_per_millisecond_, std::clamp(found, slowest, fastest));
}

void Pace::committed(std::int64_t span) { learn(commit_, std::min(static_cast<double>(span), longest_commit)); }

bool Pace::goes_on(Instant now, Instant other) const {
    return other > now && !(too_late(now, other) && may_hold(now, other));
}

bool Pace::hold(Instant now, Instant other) {
    if (other <= now || !too_late(now, other)) return false;
    const bool holds_already = now < held_until_ && other <= held_until_ && too_late(now, held_until_);
    if (holds_already) return true;
    if (!may_hold(now, other)) return false;
    held_until_ = other;
    return true;
}

bool Pace::too_late(Instant now, Instant other) const {
    return other < later_by(now, portion_span + static_cast<std::int64_t>(commit_));
}

bool Pace::may_hold(Instant now, Instant other) const {
    return held_until_ == distant_past || now - held_until_ >= work_per_rest * (other - now);
}

}  // namespace core
