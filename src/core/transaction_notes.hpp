// What one transaction has written into the timer table, as far as waking needs it: per lane the earliest
// wake_at and fire_at of every scheduled row version that is new or is to be looked at sooner. Filled by the row
// trigger, published by the transaction callback. A note never shrinks before the transaction ends: one that is too
// early costs a look, one that is lost costs a timer.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "core/instant.hpp"

namespace core {

struct LaneNote {
    Instant wake_at = never;
    Instant fire_at = never;
};

class TransactionNotes {
public:
    // Something of the timer table is or will be locked: its end is worth a look even without a lane.
    void touch() { touched_ = true; }

    // A scheduled row of `lane` was written, to be looked at at `wake_at`.
    void note(std::string_view lane, Instant wake_at, Instant fire_at);

    // The earliest wake_at noted for `lane`, or `never`.
    Instant wake_of(std::string_view lane) const;

    bool touched() const { return touched_; }
    const std::unordered_map<std::string, LaneNote>& lanes() const { return lanes_; }
    void clear();

private:
    bool touched_ = false;
    std::unordered_map<std::string, LaneNote> lanes_;
    // The lane noted last: a bulk insert into one lane looks nothing up.
    std::pair<const std::string, LaneNote>* last_ = nullptr;
};

}  // namespace core
