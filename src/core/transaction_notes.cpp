#include "core/transaction_notes.hpp"

#include <algorithm>

namespace core {

void TransactionNotes::note(std::string_view lane, Instant wake_at, Instant fire_at) {
    touched_ = true;
    // Elements of an unordered_map keep their address while others come.
    if (last_ == nullptr || last_->first != lane) last_ = &*lanes_.try_emplace(std::string(lane)).first;
    last_->second.wake_at = std::min(last_->second.wake_at, wake_at);
    last_->second.fire_at = std::min(last_->second.fire_at, fire_at);
}

Instant TransactionNotes::wake_of(std::string_view lane) const {
    const auto found = lanes_.find(std::string(lane));
    return found == lanes_.end() ? never : found->second.wake_at;
}

void TransactionNotes::clear() {
    touched_ = false;
    last_ = nullptr;
    lanes_.clear();
}

}  // namespace core
