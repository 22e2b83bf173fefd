// Calling a function of the user's from a worker: as a role, restricted, and no longer than it may take.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include "pg/guard.hpp"
#include "pg/statement.hpp"

namespace pg {

// The function `name` (schema-qualified, quoted where needed) with one argument of type `argument`; InvalidOid when
// there is none. Resolved at use: what is stored is text.
Oid find_function(const std::string& name, Oid argument);

// "schema"."name" of a function, as find_function() takes it.
std::string function_name(Oid function);

// Whether it is a plain function that returns one value of `type`.
bool returns(Oid function, Oid type);

// The role of that name; InvalidOid when there is none.
Oid find_role(const std::string& name);

// Whether call_as() is in the function now: for a signal handler, which may interrupt that, but not what comes before and
// after. A request to cancel that is pending when the function begins interrupts it at once.
extern volatile sig_atomic_t user_function_runs;

// Lets go of advisory locks that such a function has taken for the session. Outside a transaction.
void release_session_locks();

// Calls `function` with `argument` as `role`: security-restricted, with search_path = pg_catalog, pg_temp, and
// interrupted after `limit` microseconds; what it SETs ends with it. Raises what it raises; 42501 when the role may not call it.
// The caller knows by returns() what it gets.
Value call_as(Oid role, Oid function, Datum argument, std::int64_t limit);

}  // namespace pg
