// The errors of this extension: SQLSTATE class TM.
#pragma once

#include "pg/statement.hpp"
#include "store/claims.hpp"
#include "store/schedule.hpp"

namespace api {

inline constexpr int no_such_timer = MAKE_SQLSTATE('T', 'M', '0', '0', '1');
inline constexpr int wrong_state = MAKE_SQLSTATE('T', 'M', '0', '0', '2');
inline constexpr int stale_claim = MAKE_SQLSTATE('T', 'M', '0', '0', '3');

// True when the operation changed the timer, false when there was nothing to change; raises TM002 against a guarded
// claim.
pg::Value change_value(store::Change change, Datum timer_id);

// Raises TM001 or TM003 unless the operation was done.
void require_held(const store::Held& held, Datum timer_id);

}  // namespace api
