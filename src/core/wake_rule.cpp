#include "core/wake_rule.hpp"

#include <algorithm>

namespace core {

Instant wake_of_new_row(Instant fire_at, Instant floor) { return std::max(fire_at, floor); }

Instant wake_of_changed_row(const WakeState& old_row, const WakeState& new_row, bool same_lane, Instant floor) {
    if (!new_row.scheduled) return new_row.wake_at;
    const bool continues = old_row.scheduled && same_lane;
    const bool same_time = new_row.fire_at == old_row.fire_at;
    // Reached in time still, and in its order: as before, or ahead of both the clock and the place it has.
    const bool unmoved = new_row.wake_at == old_row.wake_at &&
                         (same_time || new_row.fire_at >= std::max(old_row.wake_at, floor));
    const bool caught_up = same_time && new_row.wake_at >= old_row.wake_at &&
                           new_row.wake_at <= new_row.fire_at;
    return continues && (unmoved || caught_up) ? new_row.wake_at : wake_of_new_row(new_row.fire_at, floor);
}

}  // namespace core
