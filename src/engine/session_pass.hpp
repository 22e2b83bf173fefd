// A pass in the caller's session and transaction: fire_due() and claim_due(). The same scans as the dispatcher's,
// from the same marks, lowered by what the transaction itself has written; marks rise only when it has committed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "core/instant.hpp"
#include "pg/statement.hpp"
#include "store/firing.hpp"

namespace engine {

// Ends resumes and requeues claims that have lapsed, then fires up to `most` timers that are due at `as_of`. Returns
// how many.
std::int64_t fire_due(core::Instant as_of, std::int64_t most);

// How many timers are due at `as_of`, in every lane.
std::int64_t count_due(core::Instant as_of);

// What a call of claim_due() wants.
struct ClaimRequest {
    std::optional<std::string_view> lane;    // or all
    core::Instant as_of;
    std::int64_t most;
    std::optional<std::int64_t> lease;       // microseconds; or each lane's own
    store::Claimer claimer;
};

struct ClaimOutcome {
    std::int64_t claimed = 0;
    std::int64_t killed = 0;                 // dead at the attempt ceiling instead
    bool more = false;                       // others are due
    core::Instant next = core::never;        // nothing was claimed of the one lane asked for: when to look again
};

// Claims timers, earliest first, and shows each to `visit`; see store::claim().
ClaimOutcome claim_due(const ClaimRequest& request,
                       const std::function<void(const pg::Rows&, std::uint64_t row, int column)>& visit);

}  // namespace engine
