// Consuming the outbox.
#pragma once

#include <cstdint>

#include "pg/statement.hpp"

namespace store {

// Deletes at most `most` events, of one process manager or of all (null), skipping what other consumers hold or lease, and
// puts them into a tuplestore in the order of position.
void take_events(std::int32_t most, pg::Value process_manager, Tuplestorestate* into);

// Hides events from other consumers for the length of the lease, and puts them into a tuplestore likewise.
void lease_events(std::int32_t most, Datum lease, pg::Value process_manager, Tuplestorestate* into);

// Deletes the events at these positions; returns how many there were.
std::int64_t ack_events(Datum positions);

}  // namespace store
