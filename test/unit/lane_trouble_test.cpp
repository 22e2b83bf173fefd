// Intent: the book leaves alone, for ever longer but bounded times, a lane whose rows are locked or that raises errors,
// comes back the moment there is reason to, and closes in on a bad row without waiting.
#include <string>
#include <vector>

#include "lane_book_fixture.hpp"

namespace {

using core::Delivery;
using core::Instant;
using core::Lane;
using core::LaneScan;
using core::never;
using core::second;

using LaneTroubleTest = LaneBookFixture;

// Rows that somebody holds locked.

LaneScan passing_over(Instant wake_at) {
    LaneScan scan;
    scan.passed_over = wake_at;
    return scan;
}

TEST_F(LaneTroubleTest, ComesBackToLockedRowsWithABackoffThatEndsAtASecond) {
    Lane& lane = book.lane("a");
    Instant now = 1000 * second;
    std::vector<std::int64_t> waits;
    for (int i = 0; i < 10; i++) {
        book.scanned(lane, passing_over(5), now, never);
        EXPECT_TRUE(book.passed_over());
        waits.push_back(book.deadline() - now);
        now = book.deadline();
    }
    EXPECT_LE(waits.front(), 20 * core::millisecond);
    for (std::size_t i = 1; i < waits.size(); i++) {
        EXPECT_GE(waits[i], waits[i - 1]);
        EXPECT_LE(waits[i], 2 * waits[i - 1]);
    }
    EXPECT_EQ(waits.back(), second);
}

TEST_F(LaneTroubleTest, StopsComingBackWhenTheRowsAreFree) {
    Lane& lane = book.lane("a");
    book.scanned(lane, passing_over(5), 0, never);
    book.scanned(lane, {}, 0, 7 * second);
    EXPECT_FALSE(book.passed_over());
    EXPECT_EQ(book.deadline(), 7 * second);
    // The next time it starts from a short wait again.
    book.scanned(lane, passing_over(5), 0, never);
    EXPECT_LE(book.deadline(), 20 * core::millisecond);
}

TEST_F(LaneTroubleTest, DoesNotWaitForLockedRowsBeyondTheNextTimer) {
    Lane& lane = book.lane("a");
    book.scanned(lane, passing_over(5), 100, 103);
    EXPECT_EQ(book.deadline(), 103);
}

TEST_F(LaneTroubleTest, AnEndOfTransactionWakesTheLanesWithLockedRowsAlone) {
    book.scanned(book.lane("a"), passing_over(5), 10, never);
    lane_waiting_until("b", 300);
    book.wake_locked(20);
    EXPECT_EQ(due_at(20), Names{"a"});
}

TEST_F(LaneTroubleTest, CountsEveryLaneWithLockedRows) {
    Lane& a = book.lane("a");
    Lane& b = book.lane("b");
    book.scanned(a, passing_over(5), 0, never);
    book.scanned(b, passing_over(5), 0, never);
    book.scanned(a, passing_over(5), 0, never);
    book.scanned(a, {}, 0, never);
    EXPECT_TRUE(book.passed_over());
    book.scanned(b, {}, 0, never);
    EXPECT_FALSE(book.passed_over());
}

TEST_F(LaneTroubleTest, ALaneThatIsNoLongerServedHoldsNothingUp) {
    Lane& lane = book.lane("a");
    book.scanned(lane, passing_over(5), 0, never);
    book.set(lane, settings_of(Delivery::outbox, true));
    EXPECT_FALSE(book.passed_over());
    book.set(lane, settings_of(Delivery::outbox));
    EXPECT_FALSE(book.passed_over());
    EXPECT_EQ(due_at(0), Names{"a"});
}

// Lanes that raise errors.

constexpr bool row_to_blame = true;
constexpr bool lane_to_blame = false;

TEST_F(LaneTroubleTest, LeavesAFailedLaneAloneForLongerAndLongerUpToAMinute) {
    Lane& lane = book.lane("a");
    Instant now = 0;
    std::int64_t last = 0;
    for (int i = 0; i < 12; i++) {
        book.failed(lane, now, lane_to_blame);
        const std::int64_t wait = book.deadline() - now;
        EXPECT_GE(wait, last);
        EXPECT_GE(wait, second);
        EXPECT_LE(wait, core::minute);
        last = wait;
        now = book.deadline();
    }
    EXPECT_EQ(last, core::minute);
}

TEST_F(LaneTroubleTest, NotesDoNotBringAFailedLaneForward) {
    Lane& lane = book.lane("a");
    book.failed(lane, 0, lane_to_blame);
    const Instant deadline = book.deadline();
    book.wake(lane, 0);
    book.wake_all();
    EXPECT_EQ(book.deadline(), deadline);
    EXPECT_TRUE(due_at(deadline - 1).empty());
    EXPECT_EQ(due_at(deadline), Names{"a"});
}

TEST_F(LaneTroubleTest, AFailedLaneDoesNotDelayTheOthers) {
    book.failed(book.lane("a"), 0, lane_to_blame);
    Lane& b = lane_waiting_until("b", never);
    book.wake(b, 1);
    EXPECT_EQ(due_at(1), Names{"b"});
    EXPECT_EQ(b.share, budget);
}

TEST_F(LaneTroubleTest, SuccessEndsTheFailure) {
    Lane& lane = book.lane("a");
    book.failed(lane, 0, lane_to_blame);
    book.failed(lane, 0, lane_to_blame);
    book.scanned(lane, {}, 10, never);
    book.wake(lane, 20);
    ASSERT_EQ(due_at(20), Names{"a"});
    EXPECT_EQ(lane.share, budget);
    book.failed(lane, 20, lane_to_blame);
    EXPECT_EQ(book.deadline(), 20 + second);
}

TEST_F(LaneTroubleTest, WaitsThatEndBeyondTimeEndAtItsEnd) {
    Lane& lane = book.lane("a");
    book.failed(lane, never - 1, lane_to_blame);
    EXPECT_EQ(book.deadline(), never);
}

TEST_F(LaneTroubleTest, LooksForABadRowAtOnceInEverSmallerShares) {
    Lane& lane = book.lane("a");
    ASSERT_EQ(due_at(0), Names{"a"});
    std::int64_t share = lane.share;
    ASSERT_EQ(share, budget);
    int steps = 0;
    while (share > 1) {
        book.failed(lane, 5, row_to_blame);
        ASSERT_EQ(due_at(5), Names{"a"}) << "the search does not wait";
        ASSERT_LE(lane.share, share / 2);
        ASSERT_GE(lane.share, 1);
        share = lane.share;
        steps++;
    }
    EXPECT_LE(steps, 10);
    // A single row that fails again is looked at again; the engine has set it back.
    book.failed(lane, 5, row_to_blame);
    ASSERT_EQ(due_at(5), Names{"a"});
    EXPECT_EQ(lane.share, 1);
}

TEST_F(LaneTroubleTest, GoesBackToFullSharesOnceTheBadRowIsOutOfTheWay) {
    Lane& lane = book.lane("a");
    for (int i = 0; i < 20; i++) {
        due_at(0);
        book.failed(lane, 0, row_to_blame);
    }
    LaneScan scan;
    scan.full = true;
    scan.fired = 1;
    std::vector<std::int64_t> shares;
    for (int i = 0; i < 30; i++) {
        ASSERT_EQ(due_at(0), Names{"a"});
        shares.push_back(lane.share);
        book.scanned(lane, scan, 0, never);
    }
    EXPECT_EQ(shares.front(), 1);
    for (std::size_t i = 1; i < shares.size(); i++) {
        EXPECT_LE(shares[i], 2 * shares[i - 1]);
        EXPECT_GE(shares[i], shares[i - 1]);
    }
    EXPECT_EQ(shares.back(), budget);
    EXPECT_EQ(lane.limit, Lane::no_limit);
}

TEST_F(LaneTroubleTest, LooksForABadRowInOneLaneAlone) {
    Lane& a = book.lane("a");
    Lane& b = book.lane("b");
    ASSERT_EQ(due_at(0).size(), 2U);
    book.failed(a, 0, row_to_blame);
    ASSERT_EQ(due_at(0).size(), 2U);
    EXPECT_EQ(a.share, budget / 4);
    EXPECT_EQ(b.share, budget / 2);
}

}  // namespace
