// Waiting longer after each failure in a row, up to a ceiling.
#pragma once

#include <algorithm>
#include <cstdint>

namespace core {

class Backoff {
public:
    constexpr Backoff(std::int64_t first, std::int64_t ceiling) : first_(first), ceiling_(ceiling) {}

    // The wait after one more failure.
    constexpr std::int64_t fail() {
        next_ = next_ == 0 ? first_ : std::min(next_ * 2, ceiling_);
        return next_;
    }

    constexpr void succeed() { next_ = 0; }
    constexpr bool failing() const { return next_ != 0; }

private:
    std::int64_t first_;
    std::int64_t ceiling_;
    std::int64_t next_ = 0;
};

}  // namespace core
