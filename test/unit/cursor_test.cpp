// Intent: a cursor comes back as the key that it was made of, and whatever else is handed in is refused for what it is.
#include "core/cursor.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace {

using core::CursorFault;
using core::CursorKind;

constexpr std::uint64_t filter = 0x0123456789abcdef;

core::TimerId id_of(std::uint8_t first, std::uint8_t last) {
    core::TimerId id{};
    id.front() = first;
    id.back() = last;
    return id;
}

core::PageKey some_key() { return {"reminders", 123'456'789'012'345, id_of(0xfe, 1)}; }
std::string some_cursor() { return core::encode_cursor(CursorKind::pending, filter, some_key()); }
std::optional<CursorFault> fault_of(std::string_view text) {
    return core::decode_cursor(text, CursorKind::pending, filter).fault;
}

std::vector<core::PageKey> keys() {
    std::vector<core::PageKey> all;
    for (const std::string& lane : {std::string(), std::string("a"), std::string("two words"),
                                    std::string("\x80\xff", 2), std::string("nul\0inside", 10), std::string(255, 'n')})
        for (const core::Instant at : {std::numeric_limits<core::Instant>::min(), core::Instant{-1}, core::Instant{0},
                                       core::Instant{1}, std::numeric_limits<core::Instant>::max()})
            all.push_back({lane, at, id_of(static_cast<std::uint8_t>(lane.size()), static_cast<std::uint8_t>(at))});
    return all;
}

TEST(Cursor, ComesBack) {
    for (const CursorKind kind : {CursorKind::pending, CursorKind::dead})
        for (const core::PageKey& key : keys()) {
            const auto decoded = core::decode_cursor(core::encode_cursor(kind, filter, key), kind, filter);
            EXPECT_FALSE(decoded.fault.has_value());
            EXPECT_EQ(decoded.key, key);
        }
}

TEST(Cursor, IsFitForUrls) {
    for (const core::PageKey& key : keys())
        EXPECT_EQ(core::encode_cursor(CursorKind::dead, filter, key)
                      .find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
                  std::string::npos);
}

TEST(Cursor, NamesItsKind) {
    EXPECT_TRUE(some_cursor().starts_with("timer-pending."));
    EXPECT_EQ(core::decode_cursor(some_cursor(), CursorKind::dead, filter).fault, CursorFault::other_kind);
    EXPECT_EQ(fault_of(core::encode_cursor(CursorKind::dead, filter, some_key())), CursorFault::other_kind);
}

TEST(Cursor, BelongsToItsFilter) {
    EXPECT_EQ(core::decode_cursor(some_cursor(), CursorKind::pending, filter + 1).fault, CursorFault::other_filter);
}

TEST(Cursor, CutShortAnywhereIsTruncated) {
    for (const core::PageKey& key : keys()) {
        const std::string whole = core::encode_cursor(CursorKind::pending, filter, key);
        for (std::size_t length = 1; length < whole.size(); length++)
            EXPECT_EQ(fault_of(whole.substr(0, length)), CursorFault::truncated) << length << " of " << whole.size();
    }
}

TEST(Cursor, ChangedAnywhereIsRefused) {
    const std::string whole = some_cursor();
    for (std::size_t i = 0; i < whole.size(); i++)
        for (const char c : {'A', 'z', '_', '.', ' ', '\0', '\xff'}) {
            std::string changed = whole;
            changed[i] = c;
            if (changed == whole) continue;
            EXPECT_TRUE(fault_of(changed).has_value()) << "at " << i;
        }
}

TEST(Cursor, WhatIsNoCursorIsMalformed) {
    for (const std::string& text :
         {std::string(), std::string("x"), std::string("timer-pending!"), std::string("pending.AAAA"),
          std::string("timer-pending.=") + some_cursor(), some_cursor() + "A", some_cursor() + "AAAA",
          " " + some_cursor(), some_cursor() + some_cursor()})
        EXPECT_EQ(fault_of(text), CursorFault::malformed) << text;
}

TEST(Cursor, OfAnotherVersionIsMalformed) {
    std::string other = some_cursor();
    other[std::string("timer-pending.").size()] = 'B';    // the version's higher bits
    EXPECT_EQ(fault_of(other), CursorFault::malformed);
}

TEST(PageKey, IsOrderedByBytes) {
    const core::PageKey key{"lane", 5, id_of(5, 5)};
    EXPECT_LT(key, (core::PageKey{"lanf", 0, {}}));
    EXPECT_LT(key, (core::PageKey{"lane ", 0, {}}));
    EXPECT_LT(key, (core::PageKey{"\xc3\xa9", 0, {}}));
    EXPECT_LT(key, (core::PageKey{"lane", 6, {}}));
    EXPECT_LT(key, (core::PageKey{"lane", 5, id_of(0x80, 0)}));
    EXPECT_LT((core::PageKey{"lane", -1, id_of(9, 9)}), key);
}

TEST(FilterDigest, TellsFiltersApart) {
    using Text = std::optional<std::string_view>;
    using At = std::optional<core::Instant>;
    const auto of = [](Text first, Text second, At at) {
        return core::FilterDigest().add(first).add(second).add(at).value();
    };
    const std::uint64_t all[] = {of("a", "b", 1), of("ab", "", 1), of("", "ab", 1), of("b", "a", 1), of("a", "b", 2),
                                 of("a", "b", {}), of("a", {}, 1), of({}, "a", 1), of({}, {}, {}), of("", {}, {}),
                                 of({}, "", {}), of({}, {}, 0)};
    for (const std::uint64_t& one : all)
        for (const std::uint64_t& other : all) EXPECT_EQ(one == other, &one == &other);
    EXPECT_EQ(of("a", "b", 1), of("a", "b", 1));
}

}  // namespace
