// Intent: the one rule for wake_at keeps its two promises, no row behind the floor and none later than due, and leaves
// wake_at alone where a timer is only postponed.
#include "core/wake_rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace {

using core::Instant;
using core::wake_of_changed_row;
using core::wake_of_new_row;
using core::WakeState;

constexpr bool same_lane = true;
constexpr bool other_lane = false;
constexpr Instant floor_now = 100;

// A scheduled row that was written when the floor was 50.
WakeState row(Instant wake_at, Instant fire_at) { return {true, wake_at, fire_at}; }

TEST(WakeOfNewRow, IsTheTimeItIsDue) { EXPECT_EQ(wake_of_new_row(150, floor_now), 150); }

TEST(WakeOfNewRow, QueuesAPastTimeBehindWhatIsDue) {
    EXPECT_EQ(wake_of_new_row(20, floor_now), floor_now);
    EXPECT_EQ(wake_of_new_row(floor_now, floor_now), floor_now);
}

TEST(WakeOfChangedRow, StaysWhenTheTimerIsPostponed) {
    EXPECT_EQ(wake_of_changed_row(row(150, 150), row(150, 300), same_lane, floor_now), 150);
    // Also when it has been due for a while.
    EXPECT_EQ(wake_of_changed_row(row(60, 60), row(60, 300), same_lane, floor_now), 60);
}

TEST(WakeOfChangedRow, StaysWhenAPostponedTimerIsPulledBackNoFurtherThanItsWake) {
    EXPECT_EQ(wake_of_changed_row(row(150, 300), row(150, 200), same_lane, floor_now), 150);
    EXPECT_EQ(wake_of_changed_row(row(150, 300), row(150, 150), same_lane, floor_now), 150);
}

TEST(WakeOfChangedRow, StaysWhenOnlyOtherColumnsChange) {
    EXPECT_EQ(wake_of_changed_row(row(150, 300), row(150, 300), same_lane, floor_now), 150);
    // A timer scheduled in the past keeps its place in the queue.
    EXPECT_EQ(wake_of_changed_row(row(60, 10), row(60, 10), same_lane, floor_now), 60);
}

TEST(WakeOfChangedRow, MovesUpWhenTheTimerIsPulledEarlier) {
    EXPECT_EQ(wake_of_changed_row(row(300, 300), row(300, 200), same_lane, floor_now), 200);
    EXPECT_EQ(wake_of_changed_row(row(300, 300), row(300, 20), same_lane, floor_now), floor_now);
}

TEST(WakeOfChangedRow, QueuesAnewWhatMovesIntoThePast) {
    EXPECT_EQ(wake_of_changed_row(row(60, 60), row(60, 20), same_lane, floor_now), floor_now);
    EXPECT_EQ(wake_of_changed_row(row(60, 10), row(60, 40), same_lane, floor_now), floor_now);
    EXPECT_EQ(wake_of_changed_row(row(60, 10), row(60, 80), same_lane, floor_now), floor_now);
    // As much when it had been postponed meanwhile, and the engine has not looked at it.
    EXPECT_EQ(wake_of_changed_row(row(60, 300), row(60, 20), same_lane, floor_now), floor_now);
    EXPECT_EQ(wake_of_changed_row(row(300, 300), row(300, 20), same_lane, floor_now), floor_now);
}

TEST(WakeOfChangedRow, StaysAtTheEdgeOfThePast) {
    EXPECT_EQ(wake_of_changed_row(row(60, 60), row(60, floor_now), same_lane, floor_now), 60);
    EXPECT_EQ(wake_of_changed_row(row(60, 60), row(60, floor_now - 1), same_lane, floor_now), floor_now);
}

TEST(WakeOfChangedRow, LetsTheEngineCatchUpWithAPostponedTimer) {
    EXPECT_EQ(wake_of_changed_row(row(60, 300), row(300, 300), same_lane, floor_now), 300);
    EXPECT_EQ(wake_of_changed_row(row(60, 300), row(80, 300), same_lane, floor_now), 80);
}

TEST(WakeOfChangedRow, DoesNotBelieveAWakeBeyondTheTimeItIsDue) {
    EXPECT_EQ(wake_of_changed_row(row(60, 300), row(301, 300), same_lane, floor_now), 300);
}

TEST(WakeOfChangedRow, DoesNotBelieveAWakeMovedDown) {
    EXPECT_EQ(wake_of_changed_row(row(150, 300), row(40, 300), same_lane, floor_now), 300);
    EXPECT_EQ(wake_of_changed_row(row(60, 60), row(40, 60), same_lane, floor_now), floor_now);
}

TEST(WakeOfChangedRow, StartsAfreshInAnotherLane) {
    EXPECT_EQ(wake_of_changed_row(row(60, 300), row(60, 300), other_lane, floor_now), 300);
    EXPECT_EQ(wake_of_changed_row(row(60, 60), row(60, 60), other_lane, floor_now), floor_now);
}

TEST(WakeOfChangedRow, StartsAfreshWhenTheRowBecomesScheduledAgain) {
    const WakeState firing{false, 60, 60};
    EXPECT_EQ(wake_of_changed_row(firing, row(60, 60), same_lane, floor_now), floor_now);
    EXPECT_EQ(wake_of_changed_row(firing, row(60, 400), same_lane, floor_now), 400);
}

TEST(WakeOfChangedRow, LeavesARowAloneThatIsNotScheduled) {
    const WakeState fired{false, 60, 20};
    EXPECT_EQ(wake_of_changed_row(row(60, 60), fired, same_lane, floor_now), 60);
    EXPECT_EQ(wake_of_changed_row(fired, fired, other_lane, floor_now), 60);
}

TEST(WakeOfChangedRow, WorksAtTheEndsOfTime) {
    EXPECT_EQ(wake_of_changed_row(row(50, 60), row(50, core::never - 1), same_lane, floor_now), 50);
    EXPECT_EQ(wake_of_changed_row(row(core::never - 1, core::never - 1), row(core::never - 1, core::distant_past + 1),
                                  same_lane, floor_now),
              floor_now);
}

// Every combination of small numbers, against what the engine relies on.
class WakeRuleOverAllSmallNumbers : public testing::Test {
protected:
    static constexpr Instant most = 6;

    struct Case {
        WakeState old_row;
        WakeState new_row;
        bool same_lane;
        Instant floor;
        std::string text() const {
            std::ostringstream out;
            out << "old " << old_row.scheduled << ' ' << old_row.wake_at << ' ' << old_row.fire_at << ", new "
                << new_row.wake_at << ' ' << new_row.fire_at << ", same lane " << same_lane << ", floor " << floor;
            return out.str();
        }
    };

    // Visits every change of a row that the rule itself can have written, at every floor since.
    template <typename Visit>
    static void each_case(Visit&& visit) {
        for (Instant old_floor = 0; old_floor < most; old_floor++)
            for (Instant old_fire = 0; old_fire < most; old_fire++)
                for (Instant old_wake = 0; old_wake <= std::max(old_fire, old_floor); old_wake++)
                    for (Instant wake = 0; wake < most; wake++)
                        for (Instant fire = 0; fire < most; fire++)
                            for (Instant floor = old_floor; floor < most; floor++)
                                for (const bool lane : {true, false})
                                    for (const bool scheduled : {true, false}) {
                                        visit(Case{{scheduled, old_wake, old_fire}, {true, wake, fire}, lane, floor});
                                        if (testing::Test::HasFatalFailure()) return;
                                    }
    }
};

TEST_F(WakeRuleOverAllSmallNumbers, NoRowIsReachedLaterThanItIsDue) {
    each_case([](const Case& c) {
        const Instant wake = wake_of_changed_row(c.old_row, c.new_row, c.same_lane, c.floor);
        ASSERT_LE(wake, std::max(c.new_row.fire_at, c.floor)) << c.text();
    });
}

TEST_F(WakeRuleOverAllSmallNumbers, NoRowLandsBehindTheFloorUnlessItStoodThere) {
    each_case([](const Case& c) {
        const Instant wake = wake_of_changed_row(c.old_row, c.new_row, c.same_lane, c.floor);
        // The mark of the lane is at or below where a scheduled row stands.
        const bool stood_here = c.old_row.scheduled && c.same_lane;
        ASSERT_GE(wake, stood_here ? std::min(c.old_row.wake_at, c.floor) : c.floor) << c.text();
    });
}

TEST_F(WakeRuleOverAllSmallNumbers, PostponingChangesNoIndexedColumn) {
    each_case([](const Case& c) {
        if (!c.old_row.scheduled || !c.same_lane || c.new_row.wake_at != c.old_row.wake_at ||
            c.new_row.fire_at < std::max(c.old_row.fire_at, c.floor))
            return;
        ASSERT_EQ(wake_of_changed_row(c.old_row, c.new_row, c.same_lane, c.floor), c.old_row.wake_at) << c.text();
    });
}

// The place in the lane is the later of the two; see the rule's comment.
TEST_F(WakeRuleOverAllSmallNumbers, ThePlaceIsThatOfTheNewTimeOrOfTheMoment) {
    each_case([](const Case& c) {
        if (c.new_row.wake_at != c.old_row.wake_at || (c.old_row.scheduled && c.new_row.fire_at == c.old_row.fire_at))
            return;
        const Instant wake = wake_of_changed_row(c.old_row, c.new_row, c.same_lane, c.floor);
        ASSERT_EQ(std::max(wake, c.new_row.fire_at), std::max(c.new_row.fire_at, c.floor)) << c.text();
    });
}

}  // namespace
