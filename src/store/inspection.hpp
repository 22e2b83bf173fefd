// Timers as people look at them: whole, with what they need to know about each, and the keys of pages. All of it reads
// under the snapshot that is shared, so that what a key promises is there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "pg/statement.hpp"

namespace store {

// Shows each of these timers that there are to `visit`, in their order: its row, whose columns are those of
// timers.timer_inspection but for the cursor, and its place among `ids`.
void inspect(std::span<const core::TimerId> ids,
             const std::function<void(const pg::Rows&, std::uint64_t row, std::size_t place)>& visit);

core::TimerId timer_id_of(Datum uuid);

// Up to `most` process managers that have timers, from `first` on, in order. The one that looks for itself: marks are
// read after it and before the snapshot that is shared.
std::vector<std::string> lanes_from(std::string_view first, std::int64_t most);

// Keys come in their order, those behind `after`, at most `most`.
using Keys = std::vector<core::PageKey>;

// What a row must be like, besides its state.
struct PendingFilter {
    std::optional<std::string_view> process_manager;
    std::optional<std::string_view> correlation_id;
    std::optional<core::Instant> due_before;
    bool scheduled = true;
    bool firing = true;
};

// The scheduled timers of a lane, from `start` on; what is beyond `bound` does not matter.
Keys scheduled_of(std::string_view lane, core::Instant start, core::Instant bound, const PendingFilter& filter,
                  const core::PageKey& after, std::int64_t most);
// The firing timers of some lanes, or of all.
Keys firing_of(std::optional<std::span<const std::string_view>> lanes, const PendingFilter& filter,
               const core::PageKey& after, std::int64_t most);
// What is pending of a correlation id.
Keys pending_of_correlation(const PendingFilter& filter, const core::PageKey& after, std::int64_t most);

enum class ReasonMatch { exact, prefix, contains, none };

struct DeadFilter {
    std::optional<std::string_view> process_manager;
    std::optional<std::string_view> correlation_id;
    std::optional<std::string_view> reason;    // no matter which
    ReasonMatch match = ReasonMatch::exact;
    std::optional<core::Instant> died_before;
    std::optional<core::Instant> died_after;
};

Keys dead_of(const DeadFilter& filter, const core::PageKey& after, std::int64_t most);

}  // namespace store
