// Intent: the book knows which lanes are served, and when each is next worth a look.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lane_book_fixture.hpp"

namespace {

using core::Delivery;
using core::distant_past;
using core::Instant;
using core::Lane;
using core::LaneScan;
using core::LaneSettings;
using core::never;

using LaneBookTest = LaneBookFixture;

TEST_F(LaneBookTest, IsEmptyAtFirst) {
    EXPECT_EQ(book.deadline(), never);
    EXPECT_TRUE(due_at(never).empty());
    EXPECT_FALSE(book.passed_over());
    book.wake_all();
    book.wake_locked(0);
    EXPECT_EQ(book.deadline(), never);
}

TEST_F(LaneBookTest, OpensAPageOnce) {
    Lane& opened = book.lane("a");
    EXPECT_EQ(&book.lane("a"), &opened);
    EXPECT_EQ(book.lanes().size(), 1U);
    EXPECT_EQ(opened.name, "a");
    EXPECT_FALSE(opened.known);
}

TEST_F(LaneBookTest, LooksAtANewLaneAtOnce) {
    book.lane("a");
    EXPECT_EQ(book.deadline(), distant_past);
    EXPECT_EQ(due_at(distant_past), Names{"a"});
}

TEST_F(LaneBookTest, KeepsLanesByName) {
    for (const char* name : {"b", "", "a", "ab"}) book.lane(name);
    std::vector<std::string> names;
    for (const auto& [name, lane] : book.lanes()) names.push_back(name);
    EXPECT_EQ(names, (Names{"", "a", "ab", "b"}));
}

TEST_F(LaneBookTest, KnowsALaneOnceItsSettingsAreRead) {
    Lane& lane = book.lane("a");
    LaneSettings settings = settings_of(Delivery::notify);
    settings.channel = "bell";
    settings.max_attempts = 3;
    settings.lease = 7;
    book.set(lane, settings);
    EXPECT_TRUE(lane.known);
    EXPECT_EQ(lane.settings.delivery, Delivery::notify);
    EXPECT_EQ(lane.settings.channel, std::optional<std::string>("bell"));
    EXPECT_EQ(lane.settings.max_attempts, std::optional<int>(3));
    EXPECT_EQ(lane.settings.lease, 7);
}

TEST_F(LaneBookTest, WakesAtTheEarliestLane) {
    lane_waiting_until("a", 300);
    lane_waiting_until("b", 100);
    lane_waiting_until("c", 200);
    EXPECT_EQ(book.deadline(), 100);
}

TEST_F(LaneBookTest, SleepsForEverWithNothingAhead) {
    lane_waiting_until("a", never);
    EXPECT_EQ(book.deadline(), never);
    EXPECT_TRUE(due_at(never - 1).empty());
}

TEST_F(LaneBookTest, ALaneIsDueAtItsTimeNotBefore) {
    lane_waiting_until("a", 100);
    EXPECT_TRUE(due_at(99).empty());
    EXPECT_EQ(due_at(100), Names{"a"});
}

// Waking.

TEST_F(LaneBookTest, AnEarlierNoteMovesTheLaneUp) {
    Lane& lane = lane_waiting_until("a", 300);
    book.wake(lane, 100);
    EXPECT_EQ(book.deadline(), 100);
}

TEST_F(LaneBookTest, ALaterNoteLeavesTheLaneWhereItIs) {
    Lane& lane = lane_waiting_until("a", 100);
    book.wake(lane, 300);
    EXPECT_EQ(book.deadline(), 100);
    book.wake(lane, 100);
    EXPECT_EQ(book.deadline(), 100);
}

TEST_F(LaneBookTest, WakingAllLooksAtEveryServedLane) {
    lane_waiting_until("a", 300);
    lane_waiting_until("b", never);
    book.set(lane_waiting_until("c", 100), settings_of(Delivery::external));
    book.wake_all();
    EXPECT_EQ(due_at(0), (Names{"a", "b"}));
}

// Lanes that are not served.

TEST_F(LaneBookTest, ServesAllButWhatApplicationsClaim) {
    EXPECT_TRUE(book.lane("new").served());
    for (const auto& [delivery, served] : {std::pair{Delivery::outbox, true},
                                           {Delivery::notify, true},
                                           {Delivery::handler, true},
                                           {Delivery::external, false}}) {
        Lane& lane = book.lane("a");
        book.set(lane, settings_of(delivery));
        EXPECT_EQ(lane.served(), served);
        book.set(lane, settings_of(delivery, true));
        EXPECT_FALSE(lane.served());
    }
}

TEST_F(LaneBookTest, NeverLooksAtAPausedLane) {
    Lane& lane = lane_waiting_until("a", 100);
    book.set(lane, settings_of(Delivery::outbox, true));
    EXPECT_EQ(book.deadline(), never);
    book.wake(lane, 50);
    book.wake_all();
    EXPECT_EQ(book.deadline(), never);
    EXPECT_TRUE(due_at(never).empty());
}

TEST_F(LaneBookTest, PausingOneLaneDelaysOnlyIt) {
    book.set(lane_waiting_until("a", 100), settings_of(Delivery::outbox, true));
    lane_waiting_until("b", 200);
    EXPECT_EQ(due_at(250), Names{"b"});
    EXPECT_EQ(book.deadline(), 200);
}

TEST_F(LaneBookTest, LooksAtOnceAtALaneThatIsServedAgain) {
    Lane& lane = lane_waiting_until("a", 100);
    book.set(lane, settings_of(Delivery::outbox, true));
    book.wake(lane, 50);
    book.set(lane, settings_of(Delivery::outbox));
    EXPECT_EQ(book.deadline(), distant_past);
    EXPECT_EQ(due_at(0), Names{"a"});
}

TEST_F(LaneBookTest, LooksAtOnceAtALaneWithNewSettings) {
    for (const Delivery delivery : {Delivery::notify, Delivery::handler, Delivery::outbox}) {
        Lane& lane = lane_waiting_until("a", 100);
        book.set(lane, settings_of(delivery));
        EXPECT_EQ(book.deadline(), distant_past);
        EXPECT_EQ(due_at(0), Names{"a"});
    }
}

TEST_F(LaneBookTest, SettingsThatAreReadAgainMoveNothing) {
    Lane& lane = book.lane("a");
    LaneSettings settings = settings_of(Delivery::notify);
    settings.channel = "bell";
    settings.max_attempts = 3;
    book.set(lane, settings);
    book.scanned(lane, {}, 0, 100);
    book.set(lane, settings);
    EXPECT_EQ(book.deadline(), 100);
    EXPECT_EQ(due_at(100), Names{"a"});
}

TEST_F(LaneBookTest, SettingALaneTwiceQueuesItOnce) {
    Lane& lane = book.lane("a");
    book.set(lane, settings_of(Delivery::outbox));
    book.set(lane, settings_of(Delivery::outbox));
    EXPECT_EQ(due_at(0), Names{"a"});
    book.set(lane, settings_of(Delivery::external));
    EXPECT_TRUE(due_at(never).empty());
}

// Settings that are gone.

TEST_F(LaneBookTest, ALaneThatIsResetHasTheDefaultsAndIsNotKnown) {
    Lane& lane = lane_waiting_until("a", 100);
    book.set(lane, settings_of(Delivery::external, true));
    book.reset(lane);
    EXPECT_FALSE(lane.known);
    EXPECT_EQ(lane.settings.delivery, Delivery::outbox);
    EXPECT_TRUE(lane.served());
    EXPECT_EQ(due_at(0), Names{"a"});
}

// Lanes that turn out to be nothing.

TEST_F(LaneBookTest, AForgottenLaneIsLookedAtNoMore) {
    Lane& lane = lane_waiting_until("a", 100);
    lane_waiting_until("b", 200);
    LaneScan scan;
    scan.passed_over = 5;
    book.scanned(lane, scan, 0, 100);
    book.forget(lane);
    EXPECT_FALSE(book.passed_over());
    EXPECT_EQ(book.deadline(), 200);
    EXPECT_EQ(book.lanes().size(), 1U);
    // It may come back, as a new one.
    EXPECT_FALSE(book.lane("a").known);
    EXPECT_EQ(due_at(0), Names{"a"});
}

TEST_F(LaneBookTest, AForgottenLaneThatWasNotServedLeavesNothingBehind) {
    Lane& lane = book.lane("a");
    book.set(lane, settings_of(Delivery::outbox, true));
    book.forget(lane);
    EXPECT_TRUE(book.lanes().empty());
    EXPECT_EQ(book.deadline(), never);
}

TEST(LaneScan, FindsSomethingWhenItSawARow) {
    EXPECT_FALSE(LaneScan{}.found_something());
    for (auto LaneScan::*count : {&LaneScan::fired, &LaneScan::killed, &LaneScan::rearmed}) {
        LaneScan scan;
        scan.*count = 1;
        EXPECT_TRUE(scan.found_something());
    }
    for (auto LaneScan::*instant : {&LaneScan::passed_over, &LaneScan::waiting_fire}) {
        LaneScan scan;
        scan.*instant = 5;
        EXPECT_TRUE(scan.found_something());
    }
    LaneScan full;
    full.full = true;
    EXPECT_TRUE(full.found_something());
}

// Rows that were seen but are not due.

TEST_F(LaneBookTest, ComesBackWhenAPostponedRowIsDue) {
    Lane& lane = book.lane("a");
    LaneScan scan;
    scan.rearmed = 1;
    scan.waiting_wake = 150;
    scan.waiting_fire = 150;
    book.scanned(lane, scan, 100, 400);
    EXPECT_EQ(book.deadline(), 150);
    book.scanned(lane, scan, 100, 120);
    EXPECT_EQ(book.deadline(), 120);
}

TEST_F(LaneBookTest, ComesBackAtOnceWhenTheShareWasUsedUp) {
    Lane& lane = book.lane("a");
    LaneScan scan;
    scan.full = true;
    scan.fired = 10;
    scan.last_wake = 50;
    book.scanned(lane, scan, 100, never);
    EXPECT_EQ(due_at(100), Names{"a"});
}

}  // namespace
