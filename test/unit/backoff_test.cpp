// Intent: each failure in a row waits twice as long as the one before, up to the ceiling, and success starts afresh.
#include "core/backoff.hpp"

#include <gtest/gtest.h>

namespace {

TEST(Backoff, DoublesUpToTheCeiling) {
    core::Backoff backoff(10, 75);
    EXPECT_EQ(backoff.fail(), 10);
    EXPECT_EQ(backoff.fail(), 20);
    EXPECT_EQ(backoff.fail(), 40);
    EXPECT_EQ(backoff.fail(), 75);
    EXPECT_EQ(backoff.fail(), 75);
}

TEST(Backoff, StaysAtTheCeilingHoweverOften) {
    core::Backoff backoff(1, 1000);
    for (int i = 0; i < 10'000; i++) backoff.fail();
    EXPECT_EQ(backoff.fail(), 1000);
}

TEST(Backoff, StartsAfreshAfterSuccess) {
    core::Backoff backoff(10, 1000);
    backoff.fail();
    backoff.fail();
    backoff.succeed();
    EXPECT_EQ(backoff.fail(), 10);
    EXPECT_EQ(backoff.fail(), 20);
}

TEST(Backoff, KnowsWhetherItIsFailing) {
    core::Backoff backoff(10, 1000);
    EXPECT_FALSE(backoff.failing());
    backoff.fail();
    EXPECT_TRUE(backoff.failing());
    backoff.fail();
    EXPECT_TRUE(backoff.failing());
    backoff.succeed();
    EXPECT_FALSE(backoff.failing());
    backoff.succeed();
    EXPECT_FALSE(backoff.failing());
}

}  // namespace
