// What the current transaction has to tell when it ends, collected while it runs: notes for the dispatcher, and counts
// of what it did. Registered with the server once per process; publishes at commit, abort, PREPARE and the rollback of
// a savepoint.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/instant.hpp"
#include "core/lane_counts.hpp"
#include "core/transaction_notes.hpp"

namespace engine {

// To be called from _PG_init.
void register_transaction_callbacks();

// The notes of the transaction under way.
core::TransactionNotes& notes();

// What the transaction, or the savepoint under way, does in a lane: to be counted if it commits. One that is prepared
// is counted then.
core::LaneCounts& counts_of(std::string_view lane);
void count_delivered(std::string_view lane, core::Delivery delivery, std::int64_t timers);

// A claim with this lease was written.
void note_lease(core::Instant lease_until);
void note_settings_changed();
void note_extension_changed();
void note_prepared_finished();

// Rows that were dumped elsewhere are being written: with them the database is no longer armed.
void disarm_once();

// After the transaction has committed, and only then, let the lane's mark rise to `mark`: a scan of this
// transaction that began at `since` has left nothing scheduled below it.
struct ScanStart;
void raise_mark_at_commit(std::string_view lane, core::Instant mark, const ScanStart& since);

// The least wake_at that this transaction may write now: the clock, or the highest clock that a mark was taken
// from. To be asked while the timer table is locked for writing; while shared memory does not know, the stored
// marks tell.
core::Instant write_floor();

}  // namespace engine
