#include "core/lane_book.hpp"

#include <algorithm>

namespace core {

namespace {
// Shares from this size up are not worth limiting any more.
constexpr std::int64_t longest_search = 1 << 20;
}  // namespace

Instant mark_after(const LaneScan& scan, Instant bound) {
    // A full share may have left rows with the same wake_at as its last.
    const Instant reached = scan.full ? scan.last_wake : bound;
    return std::min({reached, scan.passed_over, scan.waiting_wake});
}

Lane& LaneBook::lane(std::string_view name) {
    const auto found = lanes_.find(name);
    if (found != lanes_.end()) return found->second;
    Lane& opened = lanes_.try_emplace(std::string(name), name).first->second;
    queue_.emplace(opened.next, &opened);
    return opened;
}

void LaneBook::set(Lane& lane, LaneSettings settings) {
    // Whoever served the lane until now may have left something behind; how a handler is called is not in the book.
    const bool anew = !(settings == lane.settings) || settings.delivery == Delivery::handler;
    if (settings.retention != lane.settings.retention) lane.retention.start_again();
    lane.settings = std::move(settings);
    lane.known = true;
    if (!lane.served()) note_locked(lane, false);
    schedule(lane, anew ? distant_past : lane.next);
}

void LaneBook::reset(Lane& lane) {
    set(lane, {});
    lane.known = false;
}

void LaneBook::forget(Lane& lane) {
    note_locked(lane, false);
    queue_.erase({lane.next, &lane});
    lanes_.erase(lanes_.find(lane.name));
}

void LaneBook::wake(Lane& lane, Instant at) {
    if (at < lane.next && !lane.failed.failing()) schedule(lane, at);
}

void LaneBook::wake_all() {
    for (auto& [name, lane] : lanes_) wake(lane, distant_past);
}

void LaneBook::wake_locked(Instant at) {
    if (passed_over_ == 0) return;
    for (auto& [name, lane] : lanes_)
        if (lane.locked.failing()) wake(lane, at);
}

std::vector<Lane*> LaneBook::due(Instant now, std::size_t most, std::int64_t budget, Whose whose) {
    std::vector<Lane*> due;
    for (const auto& [next, lane] : queue_) {
        if (next > now || due.size() == most) break;
        if (whose == Whose::all || !lane->backlog) due.push_back(lane);
    }
    const std::int64_t share = due.empty() ? 0 : budget / static_cast<std::int64_t>(due.size());
    for (Lane* lane : due) lane->share = std::min(std::max(least_share, share) * lane->widening, lane->limit);
    return due;
}

void LaneBook::scanned(Lane& lane, const LaneScan& scan, Instant now, Instant ahead) {
    lane.failed.succeed();
    lane.backlog = scan.full;
    if (lane.limit != Lane::no_limit) lane.limit = lane.limit < longest_search ? lane.limit * 2 : Lane::no_limit;
    note_locked(lane, scan.passed_over != never);

    const bool moved = scan.fired + scan.killed + scan.rearmed > 0;
    lane.widening = scan.full && !moved ? lane.widening * 2 : 1;

    Instant next = std::min(ahead, scan.waiting_fire);
    if (lane.locked.failing()) next = std::min(next, later_by(now, lane.locked.fail()));
    // More is left: behind the lanes that have waited longer.
    if (scan.full) next = now;
    schedule(lane, next);
}

void LaneBook::failed(Lane& lane, Instant now, bool row_to_blame) {
    if (row_to_blame) lane.limit = std::max<std::int64_t>(1, lane.share / 2);
    schedule(lane, row_to_blame ? now : later_by(now, lane.failed.fail()));
}

void LaneBook::note_locked(Lane& lane, bool locked) {
    if (locked == lane.locked.failing()) return;
    if (locked) {
        passed_over_++;
        lane.locked.fail();
    } else {
        passed_over_--;
        lane.locked.succeed();
    }
}

Instant LaneBook::deadline() const { return queue_.empty() ? never : queue_.begin()->first; }

Instant LaneBook::deadline_without_backlog() const {
    const auto first = std::find_if(queue_.begin(), queue_.end(), [](const auto& entry) { return !entry.second->backlog; });
    return first == queue_.end() ? never : first->first;
}

void LaneBook::schedule(Lane& lane, Instant at) {
    queue_.erase({lane.next, &lane});
    lane.next = at;
    if (lane.served()) queue_.emplace(lane.next, &lane);
}

}  // namespace core
