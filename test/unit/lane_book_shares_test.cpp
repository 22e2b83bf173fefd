// Intent: no lane can starve another: shares split the budget, lanes with more to do queue behind those that have
// waited longer, and a lane whose share is filled with rows that cannot be taken looks further and further.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/lane_book.hpp"

namespace {

using core::Instant;
using core::Lane;
using core::LaneBook;
using core::LaneScan;
using core::never;

LaneScan full_scan(std::int64_t fired) {
    LaneScan scan;
    scan.full = true;
    scan.fired = fired;
    return scan;
}

std::vector<Lane*> open_lanes(LaneBook& book, int count) {
    std::vector<Lane*> lanes;
    lanes.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) lanes.push_back(&book.lane("lane " + std::to_string(i)));
    return lanes;
}

TEST(LaneShares, OneLaneMayTakeTheWholeBudget) {
    LaneBook book;
    book.lane("a");
    EXPECT_EQ(book.due(0, 10, 1000).at(0)->share, 1000);
}

TEST(LaneShares, SplitTheBudgetEvenly) {
    LaneBook book;
    open_lanes(book, 7);
    std::int64_t sum = 0;
    for (const Lane* lane : book.due(0, 10, 1000)) {
        EXPECT_EQ(lane->share, 1000 / 7);
        sum += lane->share;
    }
    EXPECT_LE(sum, 1000);
}

TEST(LaneShares, AreWorthAScan) {
    LaneBook book;
    open_lanes(book, 50);
    const auto due = book.due(0, 50, 10);
    ASSERT_EQ(due.size(), 50U);
    for (const Lane* lane : due) EXPECT_EQ(lane->share, LaneBook::least_share);
}

TEST(LaneShares, CountOnlyTheLanesOfThePass) {
    LaneBook book;
    open_lanes(book, 50);
    const auto due = book.due(0, 5, 1000);
    ASSERT_EQ(due.size(), 5U);
    for (const Lane* lane : due) EXPECT_EQ(lane->share, 200);
}

TEST(LaneShares, AreLeftOutForLanesThatAreNotDue) {
    LaneBook book;
    const auto lanes = open_lanes(book, 4);
    for (Lane* lane : lanes) book.scanned(*lane, {}, 0, 100);
    book.wake(*lanes[2], 50);
    const auto due = book.due(50, 10, 1000);
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(due[0], lanes[2]);
    EXPECT_EQ(due[0]->share, 1000);
}

TEST(LaneOrder, ServesThoseThatWaitedLongestFirst) {
    LaneBook book;
    const auto lanes = open_lanes(book, 4);
    const Instant next[] = {40, 10, 30, 20};
    for (int i = 0; i < 4; i++) book.scanned(*lanes[i], {}, 0, next[i]);
    EXPECT_EQ(book.due(100, 10, 1000), (std::vector<Lane*>{lanes[1], lanes[3], lanes[2], lanes[0]}));
    EXPECT_EQ(book.due(100, 2, 1000), (std::vector<Lane*>{lanes[1], lanes[3]}));
}

// Every lane has a backlog that never ends, and a pass serves a tenth of them.
TEST(LaneFairness, EndlessBacklogsTakeTurns) {
    constexpr int count = 150;
    constexpr std::size_t most = 15;
    LaneBook book;
    open_lanes(book, count);
    std::map<const Lane*, int> served;
    Instant now = 0;
    for (int pass = 0; pass < 1000; pass++, now++) {
        for (Lane* lane : book.due(now, most, 1000)) {
            served[lane]++;
            book.scanned(*lane, full_scan(lane->share), now, never);
        }
    }
    ASSERT_EQ(served.size(), static_cast<std::size_t>(count));
    const auto [least, greatest] = std::minmax_element(
        served.begin(), served.end(), [](const auto& one, const auto& other) { return one.second < other.second; });
    EXPECT_EQ(least->second, 100);
    EXPECT_EQ(greatest->second, 100);
}

TEST(LaneFairness, ATimerIsNotHeldUpByAnothersMillionOverdueOnes) {
    LaneBook book;
    Lane& busy = book.lane("a");
    Lane& quiet = book.lane("z");
    book.scanned(quiet, {}, 0, 500);
    std::int64_t backlog = 1'000'000;
    Instant now = 0;
    while (now < 500) {
        const auto due = book.due(now, 100, 1000);
        ASSERT_EQ(due, std::vector<Lane*>{&busy});
        backlog -= busy.share;
        book.scanned(busy, full_scan(busy.share), now, never);
        now++;
    }
    ASSERT_GT(backlog, 0);
    // In the pass in which it is due it is served beside the backlog, with half of the budget.
    const auto due = book.due(now, 100, 1000);
    ASSERT_EQ(due.size(), 2U);
    EXPECT_EQ(quiet.share, 500);
    EXPECT_EQ(busy.share, 500);
}

TEST(LaneFairness, OthersAreToldFromABacklog) {
    LaneBook book;
    Lane& busy = book.lane("a");
    Lane& quiet = book.lane("z");
    book.scanned(busy, full_scan(10), 0, never);
    book.scanned(quiet, {}, 0, 500);
    EXPECT_EQ(book.deadline(), 0);
    EXPECT_EQ(book.deadline_without_backlog(), 500);
    EXPECT_EQ(book.due(400, 10, 1000, LaneBook::Whose::without_backlog), std::vector<Lane*>{});
    EXPECT_EQ(book.due(500, 10, 1000, LaneBook::Whose::without_backlog), std::vector<Lane*>{&quiet});
    EXPECT_EQ(quiet.share, 1000);
    EXPECT_EQ(book.due(500, 1, 1000, LaneBook::Whose::without_backlog), std::vector<Lane*>{&quiet});
    book.scanned(busy, {}, 600, 700);
    EXPECT_EQ(book.deadline_without_backlog(), 500);
    book.scanned(quiet, {}, 600, never);
    EXPECT_EQ(book.deadline_without_backlog(), 700);
}

TEST(LaneFairness, ALaneThatBecomesDueWaitsForNoMoreThanOneRoundOfTheBusyOnes) {
    constexpr int busy_lanes = 100;
    constexpr int most = 10;
    constexpr int passes_of_a_round = (busy_lanes + 1 + most - 1) / most;
    LaneBook book;
    open_lanes(book, busy_lanes);
    Lane& late = book.lane("late");
    Instant now = 1000;
    book.scanned(late, {}, now, now + 777);
    int waited = -1;
    for (int pass = 0; pass < 2000; pass++, now++) {
        bool served = false;
        for (Lane* lane : book.due(now, most, 1000)) {
            served |= lane == &late;
            book.scanned(*lane, lane == &late ? LaneScan{} : full_scan(lane->share), now, never);
        }
        if (now >= 1777 && waited < 0 && served) waited = static_cast<int>(now - 1777);
    }
    ASSERT_GE(waited, 0) << "never served";
    EXPECT_LE(waited, passes_of_a_round);
}

TEST(LaneWidening, DoublesTheShareWhileAFullScanMovesNothing) {
    LaneBook book;
    Lane& lane = book.lane("a");
    for (std::int64_t share = 1000; share <= 64'000; share *= 2) {
        ASSERT_EQ(book.due(0, 10, 1000).size(), 1U);
        EXPECT_EQ(lane.share, share);
        LaneScan scan = full_scan(0);
        scan.passed_over = 5;
        book.scanned(lane, scan, 0, never);
    }
}

TEST(LaneWidening, EndsAsSoonAsSomethingMoves) {
    const auto share_after = [](const LaneScan& scan) {
        LaneBook book;
        Lane& lane = book.lane("a");
        for (int i = 0; i < 3; i++) book.scanned(lane, full_scan(0), 0, never);
        book.scanned(lane, scan, 0, never);
        book.wake(lane, 0);
        return book.due(0, 10, 1000).at(0)->share;
    };
    LaneScan killed = full_scan(0);
    killed.killed = 1;
    LaneScan rearmed = full_scan(0);
    rearmed.rearmed = 1;
    EXPECT_EQ(share_after(full_scan(0)), 16'000);
    EXPECT_EQ(share_after(full_scan(1)), 1000);
    EXPECT_EQ(share_after(killed), 1000);
    EXPECT_EQ(share_after(rearmed), 1000);
    EXPECT_EQ(share_after(LaneScan{}), 1000);
}

TEST(LaneWidening, WidensOneLaneAlone) {
    LaneBook book;
    Lane& stuck = book.lane("a");
    Lane& other = book.lane("b");
    book.scanned(stuck, full_scan(0), 0, never);
    book.scanned(other, full_scan(9), 0, never);
    ASSERT_EQ(book.due(0, 10, 1000).size(), 2U);
    EXPECT_EQ(stuck.share, 1000);
    EXPECT_EQ(other.share, 500);
}

TEST(MarkAfter, ReachesTheBoundWhenEverythingWasSeen) {
    LaneScan scan;
    scan.fired = 3;
    scan.last_wake = 50;
    EXPECT_EQ(core::mark_after(scan, 100), 100);
    EXPECT_EQ(core::mark_after({}, 100), 100);
}

TEST(MarkAfter, StopsAtTheLastRowOfAFullShare) {
    LaneScan scan = full_scan(3);
    scan.last_wake = 50;
    EXPECT_EQ(core::mark_after(scan, 100), 50);
}

TEST(MarkAfter, StopsAtARowThatWasLocked) {
    LaneScan scan;
    scan.passed_over = 30;
    scan.waiting_wake = 60;
    EXPECT_EQ(core::mark_after(scan, 100), 30);
}

TEST(MarkAfter, StopsAtARowThatIsNotDueYet) {
    LaneScan scan;
    scan.passed_over = 60;
    scan.waiting_wake = 30;
    EXPECT_EQ(core::mark_after(scan, 100), 30);
    // Postponed beyond the bound: the bound it is.
    scan = {};
    scan.waiting_wake = 400;
    EXPECT_EQ(core::mark_after(scan, 100), 100);
}

TEST(MarkAfter, OfAFullScanWithNothingInIt) {
    // As a failed lane's would be: nothing is known, nothing moves.
    EXPECT_EQ(core::mark_after(full_scan(0), 100), core::distant_past);
}

}  // namespace
