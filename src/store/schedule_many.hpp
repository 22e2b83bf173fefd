// Scheduling many timers in one statement. Requests come as an array of timers.timer_request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/schedule.hpp"

namespace store {

// The first part of a request that is null: the request's position (from 1) and the part's name.
struct Missing {
    std::int64_t position;
    std::string part;
};
std::optional<Missing> first_missing(Datum requests);

// The process managers of the requests, each once.
std::vector<std::string> process_managers_of(Datum requests);

// Schedules all of them, in the order of ids, so that two calls cannot deadlock; of several with the same id the last
// counts. Shows `visit` each request's id and outcome, in the order of the array.
void schedule_many(Datum requests, RearmMode mode, const std::function<void(Datum timer_id, Outcome outcome)>& visit);

}  // namespace store
