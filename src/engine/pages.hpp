// Pages of timers: which keys come next. A page of pending timers walks lane by lane, from each lane's mark; marks are
// read before the snapshot that all of the page is read under, so that a timer which starts to fire meanwhile is met as
// scheduled or as firing.
#pragma once

#include <cstdint>
#include <functional>

#include "store/inspection.hpp"

namespace engine {

// Shows the rows of a page to `visit`, with the key of each; see store::inspect().
using VisitRow = std::function<void(const pg::Rows&, std::uint64_t row, const core::PageKey& key)>;

void inspect(const core::TimerId& id, const VisitRow& visit);

// The first `most` behind `after`.
void find_pending(const store::PendingFilter& filter, const core::PageKey& after, std::int64_t most,
                  const VisitRow& visit);
void find_dead(const store::DeadFilter& filter, const core::PageKey& after, std::int64_t most, const VisitRow& visit);

}  // namespace engine
