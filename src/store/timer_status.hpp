// Looking at the state of one timer, to say why an operation did not apply.
#pragma once

#include <optional>
#include <string>

#include "pg/statement.hpp"
#include "store/schedule.hpp"

namespace store {

// The status of a timer as of the newest snapshot; nothing when there is no such timer. Inside a session.
std::optional<std::string> status_of(Datum timer_id);

// The answer of an operation by id that changed the row or not.
Change change_of(bool changed, Datum timer_id);

}  // namespace store
