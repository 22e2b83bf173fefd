// Intent: adding a span to an instant stays inside the range instead of wrapping round.
#include "core/instant.hpp"

#include <gtest/gtest.h>

namespace {

using core::distant_past;
using core::Instant;
using core::later_by;
using core::never;

TEST(Instant, AddsInsideTheRange) {
    EXPECT_EQ(later_by(5, 7), 12);
    EXPECT_EQ(later_by(5, -7), -2);
    EXPECT_EQ(later_by(-5, 0), -5);
}

TEST(Instant, ReachesTheEndsExactly) {
    EXPECT_EQ(later_by(never - 1, 1), never);
    EXPECT_EQ(later_by(distant_past + 1, -1), distant_past);
    EXPECT_EQ(later_by(distant_past, INT64_MAX), -1);
}

TEST(Instant, StopsAtTheEnds) {
    EXPECT_EQ(later_by(never, 1), never);
    EXPECT_EQ(later_by(never - 1, 2), never);
    EXPECT_EQ(later_by(1, INT64_MAX), never);
    EXPECT_EQ(later_by(distant_past, -1), distant_past);
    EXPECT_EQ(later_by(distant_past + 1, -2), distant_past);
    EXPECT_EQ(later_by(-2, INT64_MIN), distant_past);
}

TEST(Instant, CountsInMicroseconds) {
    EXPECT_EQ(core::millisecond, 1000 * core::microsecond);
    EXPECT_EQ(core::second, 1'000'000 * core::microsecond);
    EXPECT_EQ(core::minute, 60'000'000 * core::microsecond);
}

}  // namespace
