// Intent: every change of a timer's row counts as what it is, once; all pairs of states are looked at.
#include "core/lane_counts.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>

namespace {

using core::count_change;
using core::LaneCounts;
using core::TimerState;
using core::TimerStatus;

constexpr TimerStatus all[] = {TimerStatus::scheduled, TimerStatus::firing, TimerStatus::fired,
                               TimerStatus::cancelled, TimerStatus::dead,   TimerStatus::resuming};

// What was counted, in words; each once.
std::string told(const LaneCounts& counts) {
    std::string text;
    const auto tell = [&](std::uint64_t number, const std::string& word) {
        if (number == 0) return;
        text += (text.empty() ? "" : " ") + word;
        EXPECT_EQ(number, 1U) << word;
    };
    tell(counts.fired, "fired");
    tell(counts.cancelled, "cancelled");
    tell(counts.dead_lettered, "dead_lettered");
    tell(counts.retried, "retried");
    tell(counts.requeued, "requeued");
    for (int i = 0; i < 4; i++) tell(counts.resumes[i], std::string("resume_") + core::resume_labels[i]);
    tell(std::accumulate(std::begin(counts.attempts.buckets), std::end(counts.attempts.buckets), std::uint64_t{0}),
         "attempt");
    return text;
}

std::string change(const TimerState& was, const TimerState& is, core::Instant now = 100) {
    LaneCounts counts{};
    count_change(counts, was, is, now);
    return told(counts);
}

std::string change(TimerStatus was, TimerStatus is) { return change({was, 1, 50}, {is, 1, 50}); }

// What a change of state alone counts as.
std::string expected(TimerStatus was, TimerStatus is) {
    if (was == is) return "";
    if (is == TimerStatus::fired) return was == TimerStatus::resuming ? "fired resume_fired" : "fired";
    if (is == TimerStatus::cancelled) return was == TimerStatus::resuming ? "cancelled resume_cancelled" : "cancelled";
    if (is == TimerStatus::dead) return was == TimerStatus::resuming ? "resume_dead" : "dead_lettered";
    if (is == TimerStatus::resuming) return was == TimerStatus::dead ? "resume_claimed" : "";
    if (is == TimerStatus::scheduled && was == TimerStatus::dead) return "retried";
    if (is == TimerStatus::scheduled && was == TimerStatus::firing) return "requeued";
    return "";
}

TEST(LaneCounts, EveryPairOfStates) {
    for (const TimerStatus was : all)
        for (const TimerStatus is : all)
            EXPECT_EQ(change(was, is), expected(was, is))
                << core::timer_status_labels[static_cast<int>(was)] << " to "
                << core::timer_status_labels[static_cast<int>(is)];
}

TEST(LaneCounts, FiringIntoTheOutboxIsAnAttempt) {
    EXPECT_EQ(change({TimerStatus::scheduled, 0, 50}, {TimerStatus::fired, 1, 50}), "fired attempt");
}

TEST(LaneCounts, AClaimIsAnAttemptAndItsCompletionIsNot) {
    EXPECT_EQ(change({TimerStatus::scheduled, 2, 50}, {TimerStatus::firing, 3, 50}), "attempt");
    EXPECT_EQ(change({TimerStatus::firing, 3, 50}, {TimerStatus::fired, 3, 50}), "fired");
}

TEST(LaneCounts, TheCeilingIsMetByAnAttempt) {
    EXPECT_EQ(change({TimerStatus::scheduled, 4, 50}, {TimerStatus::dead, 5, 50}), "dead_lettered attempt");
}

TEST(LaneCounts, WhatIsTakenBackAsItWasIsRequeued) {
    EXPECT_EQ(change({TimerStatus::firing, 1, 50}, {TimerStatus::scheduled, 1, 50}), "requeued");
    EXPECT_EQ(change({TimerStatus::firing, 1, 50}, {TimerStatus::scheduled, 1, 90}), "") << "released, or retried";
    EXPECT_EQ(change({TimerStatus::firing, 1, 50}, {TimerStatus::scheduled, 0, 50}), "") << "its attempt given back";
}

TEST(LaneCounts, PostponingIsNothing) {
    EXPECT_EQ(change({TimerStatus::scheduled, 1, 50}, {TimerStatus::scheduled, 1, 90}), "");
}

TEST(LaneCounts, LagIsBehindTheTimeThatWasPromised) {
    LaneCounts counts{};
    count_change(counts, {TimerStatus::scheduled, 0, 50}, {TimerStatus::firing, 1, 50}, 57);
    EXPECT_EQ(counts.lag.sum, 7U);
    // Set back for later in the same change.
    count_change(counts, {TimerStatus::scheduled, 1, 50}, {TimerStatus::scheduled, 2, 1000}, 60);
    EXPECT_EQ(counts.lag.sum, 17U);
    // Fired ahead of its time.
    count_change(counts, {TimerStatus::scheduled, 0, 500}, {TimerStatus::fired, 1, 500}, 60);
    EXPECT_EQ(counts.lag.sum, 17U);
    EXPECT_EQ(counts.lag.buckets[0], 3U);
    EXPECT_EQ(counts.attempts.sum, 4U);
}

// A field that add() forgets would be lost at every commit.
TEST(LaneCounts, AddingLeavesNothingOut) {
    constexpr std::size_t numbers = sizeof(LaneCounts) / sizeof(std::uint64_t);
    std::uint64_t one[numbers], other[numbers], sum[numbers];
    for (std::size_t i = 0; i < numbers; i++) {
        one[i] = i + 1;
        other[i] = 1000 * (i + 1);
        sum[i] = one[i] + other[i];
    }
    LaneCounts left, right;
    std::memcpy(&left, one, sizeof left);
    std::memcpy(&right, other, sizeof right);
    left.add(right);
    EXPECT_EQ(std::memcmp(&left, sum, sizeof left), 0);
}

}  // namespace
