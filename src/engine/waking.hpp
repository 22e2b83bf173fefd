// Waking: how what a transaction wrote reaches the dispatcher, and how far scans may skip ahead. One lock covers
// notes, marks, deadline and latch, so each side below is one step. docs/architecture.md tells why no wake-up is
// lost; the order of the calls in engine/dispatch.cpp is part of that argument.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/transaction_counts.hpp"
#include "core/transaction_notes.hpp"
#include "engine/shared.hpp"

namespace engine {

// The writers' side.

// What a transaction has to say when it ends. Of one that is rolled back, or a savepoint of it, only that it is over
// counts: what it wrote is not there, and what it held locked keeps the marks of those who passed it over.
struct Message {
    bool rolled_back;
    const core::TransactionNotes* notes;
    const core::TransactionCounts* counts;
    Instant lease;              // the earliest lease_until that it wrote
    bool settings_changed;      // process_manager was written
    bool extension_changed;     // an extension was created, altered or dropped
    bool prepared_finished;     // COMMIT PREPARED or ROLLBACK PREPARED
};

// Lowers the marks, leaves the notes, adds up the counts, and sets the dispatcher's latch if it would otherwise sleep
// too long.
// Raises nothing: it runs in transaction callbacks.
void publish(const Message& message) noexcept;

// The least wake_at that may be written now: the clock, or the highest clock that a mark was taken from. False
// when that is not known, because no dispatcher has started yet.
bool read_floor(Instant& floor);

// The dispatcher's side.

struct NotedLane {
    std::string name;
    Instant fire_at;    // look at it then; its mark has been lowered already
    bool mark_moved;    // somebody else's scan has raised its mark
};

// What was published since the last time.
struct TakenNotes {
    std::vector<NotedLane> lanes;
    Instant lease = core::never;
    Instant spilled = core::never;
    bool settings_changed = false;
    bool look_everywhere = false;
    bool touched = false;       // some transaction ended that may have held rows locked
};

// Opens a pass: from here every note sets the latch, which is reset, and the notes are taken. Before the snapshot.
TakenNotes begin_pass();

// While a pass is under way: the earliest instant for which somebody has left a note since it was opened, for other lanes
// than these; distant_past when something else than timers is to be seen to.
Instant soonest_note(const std::vector<std::string_view>& but_for);

// What a pass has done, for timers.workers and timers.metrics.
struct PassCount {
    bool worked;            // it ran a transaction
    std::int64_t fired;
    std::int64_t took;      // microseconds
};

// Closes a pass: the dispatcher sleeps until `deadline`, or not at all when something has come since the pass was opened.
// That has set the latch, but whatever the pass waited for (a lock, a standby) may have reset it. Returns until when.
Instant end_pass(Instant deadline, bool passed_over, const PassCount& count);

// What timers.workers and timers.overview say.
void set_armed(bool armed);
void set_failing(std::string_view lane, bool failing);
bool is_failing(std::string_view lane);

// Sets the floor for writers to at least `clock` and returns it; the first call makes it known.
Instant raise_floor(Instant clock);

// Everybody who scans.

// Where to begin a scan, and what tells whether the lane has been written since.
struct ScanStart {
    bool shared = false;                  // the lane has its place in shared memory
    Instant mark = core::distant_past;    // distant_past: not known, take the stored one. Without a place of its
                                          // own: the lowest wake_at of all such lanes' notes not yet taken
    std::uint64_t publications = 0;
};
ScanStart scan_start(std::string_view lane);

// The dispatcher read the stored mark of a lane that has none in memory.
void set_first_mark(std::string_view lane, Instant stored);

// A handler worker found the lane drained: the dispatcher is to look at it at `at`. No mark is lowered.
void note_next_look(std::string_view lane, Instant at);

// After the commit of a scan. The dispatcher's may raise up to what was published since it took the notes; any
// other scan only where nothing was published since it began.
void raise_mark_of_dispatcher(std::string_view lane, Instant mark);
void raise_mark(std::string_view lane, Instant mark, const ScanStart& since);

// The lane's mark has been stored; tell again when it moves.
void set_stored(std::string_view lane);

}  // namespace engine
