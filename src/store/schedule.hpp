// Scheduling and cancelling, each transition as one statement in the caller's transaction.
#pragma once

#include <cstdint>

#include "pg/statement.hpp"

namespace store {

enum class Outcome { inserted, rearmed, kept, too_late };
enum class RearmMode { replace, later, earlier, keep };

// The mode as the statements take it.
pg::Value mode_value(RearmMode mode);

// A request whose parts have been checked.
struct Request {
    Datum timer_id;
    Datum process_manager;
    Datum correlation_id;
    Datum fire_at;
    Datum payload;
};

Outcome schedule(const Request& request, RearmMode mode);

// Postpones the timer to `fire_at`, but no further than `max_wait` (null: no bound) after it was first scheduled.
Outcome debounce(const Request& request, pg::Value max_wait);

// What became of an operation that names a timer by its id alone.
enum class Change { done, not_applicable, guarded };

Change cancel(Datum timer_id);
std::int64_t cancel_correlation(Datum process_manager, Datum correlation_id);

}  // namespace store
