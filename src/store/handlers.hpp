// What a handler worker needs from the database: how a process manager's handler is to be called, the timer as the
// handler takes it, and what becomes of a claim whose handler failed or was interrupted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pg/statement.hpp"

namespace store {

struct HandlerSettings {
    std::string function;
    std::string run_as;
    std::int64_t time_limit;    // microseconds
    std::int64_t lease;         // microseconds
};

// Nothing when the process manager has no handler, is paused, or is delivered in another way.
std::optional<HandlerSettings> handler_settings(std::string_view lane);

// The timer's row (timers.timer) as a composite value, in the current memory context.
Datum timer_row(Datum timer_id);

// Whether the transaction under way has itself moved the timer out of `firing`.
bool moved_by_this_transaction(Datum timer_id);

// The handler raised an error: it is kept as last_error, and the timer is scheduled again with the process manager's
// back-off or, at its ceiling, dead. False when the claim does not hold any more.
bool fail(Datum timer_id, Datum token, std::string_view error);

// The handler did not get to its end for reasons of the server's: scheduled again, and the attempt does not count.
bool give_back(Datum timer_id, Datum token);

}  // namespace store
