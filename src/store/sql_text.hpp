// SQL texts put together from parts at compile time.
#pragma once

#include <cstddef>

namespace store {

// A text of `size` characters, its closing zero included.
template <std::size_t size>
struct SqlText {
    char characters[size]{};

    constexpr SqlText() = default;
    // Implicit, so that literals can be added to texts.
    constexpr SqlText(const char (&literal)[size]) {
        for (std::size_t i = 0; i < size; i++) characters[i] = literal[i];
    }
};

template <std::size_t left, std::size_t right>
constexpr SqlText<left + right - 1> operator+(const SqlText<left>& head, const SqlText<right>& tail) {
    SqlText<left + right - 1> whole;
    for (std::size_t i = 0; i + 1 < left; i++) whole.characters[i] = head.characters[i];
    for (std::size_t i = 0; i < right; i++) whole.characters[left - 1 + i] = tail.characters[i];
    return whole;
}

template <std::size_t left, std::size_t right>
constexpr auto operator+(const SqlText<left>& head, const char (&tail)[right]) {
    return head + SqlText<right>(tail);
}

}  // namespace store
