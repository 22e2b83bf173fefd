// Transactions of a worker, and what pg_stat_activity shows of it: begun, committed, idle. An error leaves them to the process's
// own end, which rolls back.
#pragma once

#include "pg/guard.hpp"

namespace pg {

// Runs `body` in a transaction of its own and commits it. `activity` is what pg_stat_activity shows meanwhile.
template <typename Body>
void in_transaction(const char* activity, Body&& body);

void begin_transaction(const char* activity);
void commit_transaction();

// What pg_stat_activity shows from here on: within a transaction, and between two.
void show_activity(const char* activity);
void show_idle(const char* activity);

// The transaction under way will not wait for a standby: whoever is on the way out must not.
void commit_locally();

template <typename Body>
void in_transaction(const char* activity, Body&& body) {
    begin_transaction(activity);
    body();
    commit_transaction();
}

}  // namespace pg
