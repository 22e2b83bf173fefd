// Consuming the outbox.
#pragma once

#include "pg/statement.hpp"

namespace store {

// Deletes at most `most` events, of one process manager or of all (null), skipping what other consumers hold, and
// puts them into a tuplestore in the order of position.
void take_events(std::int32_t most, pg::Value process_manager, Tuplestorestate* into);

}  // namespace store
