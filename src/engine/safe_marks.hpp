// The stored marks: from where to scan after the server lost its memory. Stored seldom, and only once it is sure
// that nothing below can still turn up:
//
//   1. Take the clock c and make it the floor of every later writer.
//   2. Collect who holds the timer table for writing. A writer takes that lock before it reads the clock, and
//      lets it go only after its notes are published.
//   3. When all of those have let go, and no prepared transaction holds the table, every note of theirs has
//      lowered its mark in memory: store the lesser of c and the mark.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/lane_book.hpp"
#include "pg/locks.hpp"

namespace engine {

class SafeMarks {
public:
    // The lane's mark has risen.
    void moved(const std::string& lane) { moved_.insert(lane); }

    // Takes the next step that is possible without waiting; before the transaction writes anything. True when marks
    // are to be stored now.
    bool ready(Oid timer_table, core::Instant now);

    // Stores what ready() spoke of; in a transaction.
    void store(const core::LaneBook& book);

    // When the next step is due, or `never` while there is nothing to store.
    core::Instant due() const { return moved_.empty() ? core::never : due_; }

private:
    std::set<std::string> moved_;
    core::Instant due_ = core::distant_past;
    bool collecting_ = false;
    core::Instant clock_ = core::distant_past;
    std::vector<pg::LockHolder> writers_;
};

}  // namespace engine
