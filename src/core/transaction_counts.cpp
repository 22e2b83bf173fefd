#include "core/transaction_counts.hpp"

namespace core {

LaneCounts& TransactionCounts::of(std::string_view lane, int depth) {
    if (levels_.empty() || levels_.back().depth < depth) {
        levels_.push_back({depth, {}});
        last_ = nullptr;
    }
    if (last_ == nullptr || last_->first != lane) {
        Lanes& lanes = levels_.back().lanes;
        const auto found = lanes.find(lane);
        last_ = found != lanes.end() ? &*found : &*lanes.emplace(std::string(lane), LaneCounts{}).first;
    }
    return last_->second;
}

void TransactionCounts::keep(int depth) noexcept {
    if (levels_.empty() || levels_.back().depth < depth) return;
    last_ = nullptr;
    Level& ended = levels_.back();
    if (levels_.size() == 1 || levels_[levels_.size() - 2].depth < depth - 1) {
        ended.depth = depth - 1;
        return;
    }
    Lanes& outer = levels_[levels_.size() - 2].lanes;
    // Moving a node from map to map allocates nothing. What stays behind is in both.
    outer.merge(ended.lanes);
    for (const auto& [lane, counts] : ended.lanes) outer.find(lane)->second.add(counts);
    levels_.pop_back();
}

void TransactionCounts::roll_back(int depth) noexcept {
    last_ = nullptr;
    while (!levels_.empty() && levels_.back().depth >= depth) levels_.pop_back();
}

void TransactionCounts::clear() noexcept {
    last_ = nullptr;
    levels_.clear();
}

}  // namespace core
