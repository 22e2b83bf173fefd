// Cursors: where a page of timers ended, as text that the caller hands back for the next one. A cursor names its kind,
// carries a digest of the filter that it was made under, and ends in a check sum; decoding says what is wrong with one
// that cannot be used. It is no secret and proves nothing: whoever forges one sees what he may see anyway.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "core/instant.hpp"

namespace core {

using TimerId = std::array<std::uint8_t, 16>;

// A timer's place in the order of pages, which is that of an index.
struct PageKey {
    std::string lane;             // the process manager; empty in pages of dead timers
    Instant at = distant_past;    // wake_at, or the moment of death
    TimerId id{};

    bool operator==(const PageKey&) const = default;
    bool operator<(const PageKey& other) const {
        return std::tie(lane, at, id) < std::tie(other.lane, other.at, other.id);
    }
};

enum class CursorKind { pending, dead };
std::string_view name_of(CursorKind kind);

// A digest of what a page is filtered by; an argument that is left out counts, too.
class FilterDigest {
public:
    FilterDigest& add(std::optional<std::string_view> text);
    FilterDigest& add(std::optional<Instant> instant);
    std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325;
};

std::string encode_cursor(CursorKind kind, std::uint64_t filter, const PageKey& key);

enum class CursorFault { malformed, truncated, other_kind, other_filter };

struct DecodedCursor {
    std::optional<CursorFault> fault;
    PageKey key;
};
DecodedCursor decode_cursor(std::string_view text, CursorKind kind, std::uint64_t filter);

}  // namespace core
