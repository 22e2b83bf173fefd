// Whether this database may fire by itself. A restored dump, a clone of a template and an upgraded server hold timers
// that belong to somebody else: they wait for timers.arm().
#pragma once

#include <string>

namespace store {

// What tells this database from its copies: the server's system identifier and the database's oid. A standby that is
// promoted keeps it.
std::string own_identity();

bool is_armed();

// The transaction writes rows that were dumped elsewhere.
void disarm();

}  // namespace store
