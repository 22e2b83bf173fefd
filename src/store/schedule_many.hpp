// Scheduling many timers in one statement.
#pragma once

#include <span>
#include <vector>

#include "store/schedule.hpp"

namespace store {

// Schedules all of them, in the order of ids, so that two calls cannot deadlock; of several with the same id the last
// counts. Returns an outcome for each request, in their order.
std::vector<Outcome> schedule_many(std::span<const Request> requests, RearmMode mode);

}  // namespace store
