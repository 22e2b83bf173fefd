// A pass in the caller's session and transaction: fire_due() and claim_due(). The same scans as the dispatcher's,
// from the same marks, lowered by what the transaction itself has written; marks rise only when it has committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/instant.hpp"
#include "pg/server.hpp"

namespace engine {

// Requeues what has lapsed, then fires up to `most` timers that are due at `as_of`. Returns how many.
std::int64_t fire_due(core::Instant as_of, std::int64_t most);

// Claims up to `most` timers that are due at `as_of`, of one lane or of all, earliest first, into a tuplestore of
// timers.claimed_timer. `lease` in microseconds; without one each lane's own.
void claim_due(std::optional<std::string_view> lane, core::Instant as_of, std::int64_t most,
               std::optional<std::int64_t> lease, std::string_view claimed_by, Tuplestorestate* into,
               TupleDesc shape);

}  // namespace engine
