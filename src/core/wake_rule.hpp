// The one rule for wake_at: when the engine next looks at a row. Called by the row trigger for every write.
// It must keep two promises: no scheduled row is written behind `floor` (the clock, or the highest mark taken
// from it), and the engine reaches a row no later than it is due.
#pragma once

#include "core/instant.hpp"

namespace core {

// What the rule reads of a row version.
struct WakeState {
    bool scheduled;
    Instant wake_at;
    Instant fire_at;
};

// A row that becomes scheduled: queues behind what is due already.
Instant wake_of_new_row(Instant fire_at, Instant floor);

// A row that was rewritten. Postponing keeps wake_at (lazy re-arm: the update touches no index), and the engine
// may then move wake_at up to fire_at: no mark can lie between. Advancing to before wake_at, another time in the past,
// changing the lane, any other move of wake_at and becoming scheduled again start afresh. So the place of a timer in
// its lane, the later of wake_at and fire_at, is that of its fire_at or of the moment it was given it, whatever it had
// before and whether or not the engine has looked at it since.
Instant wake_of_changed_row(const WakeState& old_row, const WakeState& new_row, bool same_lane, Instant floor);

}  // namespace core
