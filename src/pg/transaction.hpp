// Transactions of a worker: begun, committed, shown in pg_stat_activity. An error leaves them to the process's
// own end, which rolls back.
#pragma once

#include "pg/guard.hpp"

namespace pg {

// Runs `body` in a transaction of its own and commits it. `activity` is what pg_stat_activity shows meanwhile.
template <typename Body>
void in_transaction(const char* activity, Body&& body);

void begin_transaction(const char* activity);
void commit_transaction();

// The transaction under way will not wait for a standby: whoever is on the way out must not.
void commit_locally();

template <typename Body>
void in_transaction(const char* activity, Body&& body) {
    begin_transaction(activity);
    body();
    commit_transaction();
}

}  // namespace pg
