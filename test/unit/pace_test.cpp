// Intent: a backlog is worked off in portions, nobody else is late for it, and it is held up for little of the time.
#include "core/pace.hpp"

#include <gtest/gtest.h>

namespace {

using core::distant_past;
using core::Instant;
using core::millisecond;
using core::never;
using core::Pace;

constexpr Instant now = 1'000'000'000;

// A pace that has learned what portions and commits take.
Pace pace_of(std::int64_t rows_per_millisecond, std::int64_t commit = millisecond) {
    Pace pace;
    for (int i = 0; i < 100; i++) {
        pace.took(10 * rows_per_millisecond, 10 * millisecond);
        pace.committed(commit);
    }
    return pace;
}

TEST(Portion, IsAMillisecondsWorth) {
    EXPECT_NEAR(pace_of(80).portion(false), 80, 1);
    EXPECT_NEAR(pace_of(20).portion(false), 20, 1);
}

TEST(Portion, IsLargerWhileNobodyElseIsExpected) { EXPECT_NEAR(pace_of(80).portion(true), 800, 10); }

TEST(Portion, FollowsWhatItIsTold) {
    Pace pace = pace_of(80);
    const std::int64_t before = pace.portion(false);
    pace.took(before, 2 * millisecond);
    const std::int64_t after = pace.portion(false);
    EXPECT_LT(after, before);
    EXPECT_GT(after, before / 2);
}

TEST(Portion, IsNotJudgedByAFewRows) {
    Pace pace = pace_of(80);
    const std::int64_t before = pace.portion(false);
    for (int i = 0; i < 100; i++) pace.took(1, millisecond);
    EXPECT_EQ(pace.portion(false), before);
}

TEST(Portion, StaysWithinBounds) {
    EXPECT_GT(pace_of(0).portion(false), 0);
    Pace pace;
    for (int i = 0; i < 1000; i++) pace.took(1'000'000, 0);
    EXPECT_LE(pace.portion(false), 1000);
}

TEST(GoesOn, WhileNobodyElseIsDue) {
    const Pace pace = pace_of(80);
    EXPECT_TRUE(pace.goes_on(now, never));
    EXPECT_TRUE(pace.goes_on(now, now + 10 * millisecond));
    EXPECT_FALSE(pace.goes_on(now, now));
    EXPECT_FALSE(pace.goes_on(now, distant_past));
}

TEST(GoesOn, NotIfAnotherPortionCouldNotBeCommittedInTime) {
    EXPECT_FALSE(pace_of(80, 5 * millisecond).goes_on(now, now + 5 * millisecond));
    EXPECT_TRUE(pace_of(80, millisecond).goes_on(now, now + 5 * millisecond));
}

TEST(GoesOn, HoweverSlowCommitsAre) { EXPECT_TRUE(pace_of(80, core::minute).goes_on(now, now + core::second)); }

TEST(Hold, ForSomebodyWhoIsDueInAMoment) {
    Pace pace = pace_of(80);
    EXPECT_FALSE(pace.hold(now, now + 10 * millisecond));
    EXPECT_TRUE(pace.hold(now, now + millisecond));
}

TEST(Hold, NotForSomebodyWhoIsDueAlready) {
    Pace pace = pace_of(80);
    EXPECT_FALSE(pace.hold(now, now));
    EXPECT_FALSE(pace.hold(now, distant_past));
    EXPECT_FALSE(pace.hold(now, never));
}

TEST(Hold, GoesOnUntilThen) {
    Pace pace = pace_of(80);
    ASSERT_TRUE(pace.hold(now, now + millisecond));
    EXPECT_TRUE(pace.hold(now + millisecond / 2, now + millisecond));
    // Somebody comes in between; whoever comes after it is not waited for, too.
    EXPECT_TRUE(pace.hold(now + millisecond / 2, now + millisecond * 3 / 4));
    EXPECT_FALSE(pace.hold(now + millisecond / 2, now + millisecond * 5 / 4));
    EXPECT_FALSE(pace.hold(now + millisecond, now + millisecond));
}

TEST(Hold, EndsAtOnceWhenTheClockIsSetBack) {
    Pace pace = pace_of(80);
    ASSERT_TRUE(pace.hold(now, now + millisecond));
    EXPECT_FALSE(pace.hold(now - core::minute, now - core::minute + millisecond));
}

TEST(Hold, TakesATenthOfTheTimeAtMost) {
    Pace pace = pace_of(80);
    Instant clock = now;
    std::int64_t held = 0;
    // Somebody is always due in 600 microseconds.
    while (clock < now + core::second) {
        if (pace.hold(clock, clock + 600)) {
            held += 600;
            clock += 600;
        } else {
            clock += 100;
        }
    }
    EXPECT_GT(held, core::second / 20);
    EXPECT_LE(held, core::second / 10 + 600);
}

TEST(Hold, OnceSpentThePortionsGoOn) {
    Pace pace = pace_of(80);
    ASSERT_TRUE(pace.hold(now, now + millisecond));
    const Instant later = now + 2 * millisecond;
    EXPECT_FALSE(pace.hold(later, later + millisecond));
    EXPECT_TRUE(pace.goes_on(later, later + millisecond));
    EXPECT_FALSE(pace.goes_on(later, later));
}

}  // namespace
