// Heavyweight locks: who writes a table, and locks on things that have no table.
#pragma once

#include <vector>

#include "pg/compat.hpp"

namespace pg {

// The transactions that hold ROW EXCLUSIVE on the table: all that have written it, prepared ones included.
//
// Read from the lock table itself, as pg_locks is. GetLockConflicts(), by which CREATE INDEX CONCURRENTLY
// waits, would not do: it leaves out a transaction that has ended in the proc array but not yet released its
// locks, and that is when transaction callbacks run.
std::vector<LockHolder> table_writers(Oid table);

// Whether `holder`, seen in an earlier answer of table_writers(), has let the table go as of `writers`.
bool has_let_go(const LockHolder& holder, const std::vector<LockHolder>& writers);

// Whether a prepared transaction is among them.
bool any_prepared(const std::vector<LockHolder>& writers);

// Whether some prepared transaction has written the table.
bool prepared_writers(Oid table);

// Takes an exclusive lock on a name of ours until the end of the transaction, unless somebody else has it.
bool try_lock_name(uint32 hash);
// The same, waiting for whoever has it.
void lock_name(uint32 hash);

}  // namespace pg
