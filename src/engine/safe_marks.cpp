#include "engine/safe_marks.hpp"

#include <algorithm>

#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "store/lanes.hpp"

namespace engine {

namespace {
constexpr std::int64_t between_stores = 10 * core::second;
constexpr std::int64_t between_looks = core::second;
}  // namespace

bool SafeMarks::ready(Oid timer_table, core::Instant now) {
    if (moved_.empty() || now < due_) return false;
    if (!collecting_) {
        clock_ = raise_floor(pg::wall_clock());
        writers_ = pg::table_writers(timer_table);
        collecting_ = true;
    }
    const std::vector<pg::LockHolder> writers = pg::table_writers(timer_table);
    const bool gone = std::all_of(writers_.begin(), writers_.end(), [&](const pg::LockHolder& holder) {
        return pg::has_let_go(holder, writers);
    });
    if (gone && !pg::any_prepared(writers)) return true;
    due_ = core::later_by(now, between_looks);
    return false;
}

void SafeMarks::store(const core::LaneBook& book) {
    for (const std::string& name : moved_) {
        const auto found = book.lanes().find(name);
        if (found == book.lanes().end()) continue;
        set_stored(name);
        const ScanStart start = scan_start(name);
        store::store_safe_mark(name, std::min({clock_, start.mark, start.shared ? core::never : found->second.mark}));
    }
    moved_.clear();
    collecting_ = false;
    due_ = core::later_by(clock_, between_stores);
}

}  // namespace engine
