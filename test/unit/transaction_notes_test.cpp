// Intent: a transaction's notes keep the earliest times of every lane that it wrote, and lose none of them.
#include "core/transaction_notes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace {

using core::Instant;
using core::never;
using core::TransactionNotes;

TEST(TransactionNotes, SayNothingAtFirst) {
    const TransactionNotes notes;
    EXPECT_FALSE(notes.touched());
    EXPECT_TRUE(notes.lanes().empty());
    EXPECT_EQ(notes.wake_of("a"), never);
}

TEST(TransactionNotes, TouchingNamesNoLane) {
    TransactionNotes notes;
    notes.touch();
    EXPECT_TRUE(notes.touched());
    EXPECT_TRUE(notes.lanes().empty());
}

TEST(TransactionNotes, ANoteTouches) {
    TransactionNotes notes;
    notes.note("a", 5, 7);
    EXPECT_TRUE(notes.touched());
    ASSERT_TRUE(notes.lanes().contains("a"));
    EXPECT_EQ(notes.lanes().at("a").wake_at, 5);
    EXPECT_EQ(notes.lanes().at("a").fire_at, 7);
    EXPECT_EQ(notes.wake_of("a"), 5);
    EXPECT_EQ(notes.wake_of("b"), never);
}

TEST(TransactionNotes, KeepTheEarliestOfEachTimeByItself) {
    TransactionNotes notes;
    notes.note("a", 5, 70);
    notes.note("a", 6, 60);
    notes.note("a", 7, 80);
    EXPECT_EQ(notes.lanes().at("a").wake_at, 5);
    EXPECT_EQ(notes.lanes().at("a").fire_at, 60);
}

TEST(TransactionNotes, KeepLanesApart) {
    TransactionNotes notes;
    notes.note("a", 5, 5);
    notes.note("ab", 3, 3);
    notes.note("a", 4, 4);
    notes.note("", 1, 1);
    EXPECT_EQ(notes.lanes().size(), 3U);
    EXPECT_EQ(notes.wake_of("a"), 4);
    EXPECT_EQ(notes.wake_of("ab"), 3);
    EXPECT_EQ(notes.wake_of(""), 1);
}

TEST(TransactionNotes, CopyTheName) {
    TransactionNotes notes;
    std::string name = "first";
    notes.note(name, 5, 5);
    name = "other";
    notes.note(name, 6, 6);
    EXPECT_EQ(notes.wake_of("first"), 5);
    EXPECT_EQ(notes.wake_of("other"), 6);
}

TEST(TransactionNotes, ForgetEverythingWhenCleared) {
    TransactionNotes notes;
    notes.note("a", 5, 5);
    notes.clear();
    EXPECT_FALSE(notes.touched());
    EXPECT_TRUE(notes.lanes().empty());
    EXPECT_EQ(notes.wake_of("a"), never);
}

TEST(TransactionNotes, StartAfreshInALaneThatWasNotedLastBeforeTheClearing) {
    TransactionNotes notes;
    notes.note("a", 5, 5);
    notes.clear();
    notes.note("a", 9, 9);
    EXPECT_EQ(notes.wake_of("a"), 9);
    EXPECT_EQ(notes.lanes().size(), 1U);
}

TEST(TransactionNotes, TakeTheEndsOfTime) {
    TransactionNotes notes;
    notes.note("a", never - 1, never - 1);
    EXPECT_EQ(notes.wake_of("a"), never - 1);
    notes.note("a", core::distant_past + 1, never - 1);
    EXPECT_EQ(notes.wake_of("a"), core::distant_past + 1);
}

// Many lanes, so that the table of lanes grows under the shortcut to the last one.
TEST(TransactionNotes, AgreeWithAPlainMapWhateverTheOrder) {
    std::mt19937_64 random(20'000'101);
    for (int round = 0; round < 50; round++) {
        TransactionNotes notes;
        std::map<std::string, core::LaneNote> model;
        for (int i = 0; i < 2000; i++) {
            // Runs of the same lane, as a bulk insert makes them.
            const std::string lane = "lane " + std::to_string(random() % (i / 3 + 1));
            const auto repeats = static_cast<int>(random() % 3);
            for (int j = 0; j <= repeats; j++) {
                const auto wake_at = static_cast<Instant>(random() % 1'000'000);
                const auto fire_at = static_cast<Instant>(random() % 1'000'000);
                notes.note(lane, wake_at, fire_at);
                core::LaneNote& expected = model[lane];
                expected.wake_at = std::min(expected.wake_at, wake_at);
                expected.fire_at = std::min(expected.fire_at, fire_at);
            }
        }
        ASSERT_EQ(notes.lanes().size(), model.size());
        for (const auto& [lane, expected] : model) {
            ASSERT_EQ(notes.lanes().at(lane).wake_at, expected.wake_at) << lane;
            ASSERT_EQ(notes.lanes().at(lane).fire_at, expected.fire_at) << lane;
            ASSERT_EQ(notes.wake_of(lane), expected.wake_at) << lane;
        }
    }
}

}  // namespace
