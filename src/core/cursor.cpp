// A cursor is the name of its kind, a dot, and this in base64url, numbers with the highest byte first:
//
//   version 1 | filter 8 | at 8 | id 16 | length of lane 1 | lane | check sum over kind and all before it 4
#include "core/cursor.hpp"

#include <algorithm>
#include <vector>

namespace core {

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t version = 1;
constexpr std::size_t lane_length_at = 1 + 8 + 8 + std::tuple_size_v<TimerId>;
constexpr std::size_t check_size = 4;
constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr CursorKind kinds[] = {CursorKind::pending, CursorKind::dead};

// FNV-1a.
template <typename Word>
Word hash(Word state, Word prime, std::uint8_t byte) {
    return (state ^ byte) * prime;
}

std::uint32_t check_of(CursorKind kind, const Bytes& bytes, std::size_t size) {
    std::uint32_t sum = 0x811c9dc5;
    for (const char c : name_of(kind)) sum = hash<std::uint32_t>(sum, 0x01000193, static_cast<std::uint8_t>(c));
    for (std::size_t i = 0; i < size; i++) sum = hash<std::uint32_t>(sum, 0x01000193, bytes[i]);
    return sum;
}

void put(Bytes& bytes, std::uint64_t number, std::size_t size) {
    while (size-- > 0) bytes.push_back(static_cast<std::uint8_t>(number >> (8 * size)));
}

std::uint64_t number_at(const Bytes& bytes, std::size_t at, std::size_t size) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < size; i++) number = number << 8 | bytes[at + i];
    return number;
}

std::string base64(const Bytes& bytes) {
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const std::uint8_t byte : bytes) {
        bits = bits << 8 | byte;
        for (count += 8; count >= 6; count -= 6) text += alphabet[bits >> (count - 6) & 63];
    }
    if (count > 0) text += alphabet[bits << (6 - count) & 63];
    return text;
}

// The whole bytes of a text; nothing when a character is none of the alphabet's.
std::optional<Bytes> bytes_of(std::string_view text) {
    Bytes bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const std::size_t value = alphabet.find(c);
        if (value == std::string_view::npos) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes.push_back(static_cast<std::uint8_t>(bits >> count));
    }
    return bytes;
}

// The kind that a text begins with, and what is behind it.
struct Named {
    std::optional<CursorKind> kind;
    bool cut_short = false;    // it ends inside the name of a kind
    std::string_view rest;
};

Named named(std::string_view text) {
    for (const CursorKind kind : kinds) {
        const std::string prefix = std::string(name_of(kind)) + ".";
        if (text.starts_with(prefix)) return {kind, false, text.substr(prefix.size())};
        if (!text.empty() && prefix.starts_with(text)) return {std::nullopt, true, {}};
    }
    return {};
}

}  // namespace

std::string_view name_of(CursorKind kind) { return kind == CursorKind::pending ? "timer-pending" : "timer-dead"; }

FilterDigest& FilterDigest::add(std::optional<std::string_view> text) {
    add(text ? std::optional<Instant>(static_cast<Instant>(text->size())) : std::nullopt);
    for (const char c : text.value_or(""))
        value_ = hash<std::uint64_t>(value_, 0x100000001b3, static_cast<std::uint8_t>(c));
    return *this;
}

FilterDigest& FilterDigest::add(std::optional<Instant> instant) {
    Bytes bytes{instant.has_value()};
    put(bytes, static_cast<std::uint64_t>(instant.value_or(0)), 8);
    for (const std::uint8_t byte : bytes) value_ = hash<std::uint64_t>(value_, 0x100000001b3, byte);
    return *this;
}

std::string encode_cursor(CursorKind kind, std::uint64_t filter, const PageKey& key) {
    Bytes bytes{version};
    put(bytes, filter, 8);
    put(bytes, static_cast<std::uint64_t>(key.at), 8);
    bytes.insert(bytes.end(), key.id.begin(), key.id.end());
    put(bytes, key.lane.size(), 1);
    bytes.insert(bytes.end(), key.lane.begin(), key.lane.end());
    put(bytes, check_of(kind, bytes, bytes.size()), check_size);
    return std::string(name_of(kind)) + "." + base64(bytes);
}

DecodedCursor decode_cursor(std::string_view text, CursorKind kind, std::uint64_t filter) {
    const Named begin = named(text);
    if (begin.cut_short) return {CursorFault::truncated, {}};
    if (!begin.kind) return {CursorFault::malformed, {}};
    if (*begin.kind != kind) return {CursorFault::other_kind, {}};

    const std::optional<Bytes> decoded = bytes_of(begin.rest);
    if (!decoded) return {CursorFault::malformed, {}};
    const Bytes& bytes = *decoded;
    if (!bytes.empty() && bytes[0] != version) return {CursorFault::malformed, {}};
    if (bytes.size() <= lane_length_at) return {CursorFault::truncated, {}};
    const std::size_t lane_size = bytes[lane_length_at];
    const std::size_t check_at = lane_length_at + 1 + lane_size;
    if (bytes.size() < check_at + check_size) return {CursorFault::truncated, {}};
    // There is one way to write it, and that is how it was written.
    if (bytes.size() > check_at + check_size || base64(bytes) != begin.rest ||
        number_at(bytes, check_at, check_size) != check_of(kind, bytes, check_at))
        return {CursorFault::malformed, {}};
    if (number_at(bytes, 1, 8) != filter) return {CursorFault::other_filter, {}};

    PageKey key;
    key.at = static_cast<Instant>(number_at(bytes, 9, 8));
    std::copy_n(bytes.begin() + 17, key.id.size(), key.id.begin());
    key.lane.assign(bytes.begin() + lane_length_at + 1, bytes.begin() + static_cast<std::ptrdiff_t>(check_at));
    return {std::nullopt, std::move(key)};
}

}  // namespace core
