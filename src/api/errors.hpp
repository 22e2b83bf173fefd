// The errors of this extension: SQLSTATE class TM. Each is raised here, with its detail and its hint.
#pragma once

#include <string>

#include "core/cursor.hpp"
#include "pg/statement.hpp"
#include "store/claims.hpp"
#include "store/resume.hpp"
#include "store/schedule.hpp"

namespace api {

inline constexpr int no_such_timer = MAKE_SQLSTATE('T', 'M', '0', '0', '1');
inline constexpr int wrong_state = MAKE_SQLSTATE('T', 'M', '0', '0', '2');
inline constexpr int stale_claim = MAKE_SQLSTATE('T', 'M', '0', '0', '3');
inline constexpr int held_by_another = MAKE_SQLSTATE('T', 'M', '0', '0', '4');
inline constexpr int expectation_not_met = MAKE_SQLSTATE('T', 'M', '0', '0', '5');
inline constexpr int bad_cursor = MAKE_SQLSTATE('T', 'M', '0', '0', '6');

// True when the operation changed the timer, false when there was nothing to change; raises TM002 against a guarded
// claim.
pg::Value change_value(store::Change change, Datum timer_id);

// Raises TM001 or TM003 unless the operation was done.
void require_held(const store::Held& held, Datum timer_id);

// The same for a resume.
void require_resume(bool done, Datum timer_id, Datum token);

// Raises why the timer cannot be claimed: TM001, TM002, TM004 or TM005. Returns where it can be by now.
void refuse_resume(const store::ResumeRequest& request);

// Raises TM006.
[[noreturn]] void refuse_cursor(core::CursorFault fault, core::CursorKind wanted);

}  // namespace api
