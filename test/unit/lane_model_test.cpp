// Intent: over random histories the wake rule, the lane book and the marks together fire every timer at the instant it
// is due, in order, and never let a mark pass a row that is still scheduled. The table and its scan are modelled here
// in a few lines; the clock jumps from event to event.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/lane_book.hpp"
#include "core/wake_rule.hpp"

namespace {

using core::Instant;
using core::Lane;
using core::LaneBook;
using core::LaneScan;
using core::never;

struct Timer {
    Instant wake_at;
    Instant fire_at;
    Instant given_at;  // when it was given its fire_at
    bool scheduled = true;
    bool locked = false;  // by somebody who publishes nothing when he lets go
    Instant fired_at = never;
};

// One lane's part of the timer table.
class LaneTable {
public:
    // What the statement of a pass does; see core::LaneScan for what it answers.
    LaneScan scan(Instant start, Instant bound, Instant now, std::int64_t share) {
        std::vector<Timer*> seen;
        for (Timer& timer : timers)
            if (timer.scheduled && timer.wake_at >= start && timer.wake_at <= bound) seen.push_back(&timer);
        std::stable_sort(seen.begin(), seen.end(),
                         [](const Timer* a, const Timer* b) { return a->wake_at < b->wake_at; });
        LaneScan result;
        result.full = static_cast<std::int64_t>(seen.size()) >= share;
        if (result.full) seen.resize(static_cast<std::size_t>(share));
        if (!seen.empty()) result.last_wake = seen.back()->wake_at;
        const Instant reach = result.full ? result.last_wake : bound;

        std::vector<Timer*> due;
        for (Timer* timer : seen) {
            const Instant key = std::max(timer->wake_at, timer->fire_at);
            if (timer->locked) {
                result.passed_over = std::min(result.passed_over, timer->wake_at);
            } else if (key <= reach && timer->fire_at <= now) {
                due.push_back(timer);
            } else {
                result.waiting_wake = std::min(result.waiting_wake, key);
                result.waiting_fire = std::min(result.waiting_fire, timer->fire_at);
                if (timer->wake_at < timer->fire_at) {
                    timer->wake_at = timer->fire_at;
                    result.rearmed++;
                }
            }
        }
        std::stable_sort(due.begin(), due.end(), [](const Timer* a, const Timer* b) {
            return std::max(a->wake_at, a->fire_at) < std::max(b->wake_at, b->fire_at);
        });
        for (Timer* timer : due) {
            timer->scheduled = false;
            timer->fired_at = now;
            fired_keys.push_back(std::max(timer->fire_at, timer->given_at));
        }
        result.fired = static_cast<std::int64_t>(due.size());
        return result;
    }

    Instant next_wake_beyond(Instant bound) const {
        Instant next = never;
        for (const Timer& timer : timers)
            if (timer.scheduled && timer.wake_at > bound) next = std::min(next, timer.wake_at);
        return next;
    }

    Instant lowest_wake() const {
        Instant lowest = never;
        for (const Timer& timer : timers)
            if (timer.scheduled) lowest = std::min(lowest, timer.wake_at);
        return lowest;
    }

    std::deque<Timer> timers;
    std::vector<Instant> fired_keys;
};

// A history: what is scheduled, moved and locked, and a dispatcher that sleeps to its deadline.
class History {
public:
    History(std::uint64_t seed, bool with_locks) : random_(seed), with_locks_(with_locks) {}

    void run(int events) {
        for (int i = 0; i < events; i++) {
            const Instant next_event = now_ + below(30);
            work_until(next_event);
            write();
            check_marks();
        }
        for (auto& [name, table] : tables_)
            for (Timer& timer : table.timers) timer.locked = false;
        work_until(now_ + 10 * core::minute);
        check_all_fired();
    }

private:
    Instant below(Instant limit) { return static_cast<Instant>(random_() % static_cast<std::uint64_t>(limit)); }

    // Passes as the dispatcher makes them, until nothing is due up to `until`.
    void work_until(Instant until) {
        int passes_at_once = 0;
        while (book_.deadline() <= until) {
            const Instant before = now_;
            now_ = std::max(now_, book_.deadline());
            passes_at_once = now_ == before ? passes_at_once + 1 : 0;
            ASSERT_LT(passes_at_once, 1000) << "the dispatcher runs in circles";
            pass();
        }
        now_ = until;
    }

    void pass() {
        for (Lane* lane : book_.due(now_, 2, 8)) {
            LaneTable& table = tables_[lane->name];
            const LaneScan scan = table.scan(lane->mark, now_, now_, lane->share);
            lane->mark = std::max(lane->mark, core::mark_after(scan, now_));
            book_.scanned(*lane, scan, now_, scan.full ? never : table.next_wake_beyond(now_));
            check_mark(*lane);
        }
    }

    // A transaction that schedules, moves or cancels a timer, and its note.
    void write() {
        const std::string name = "lane " + std::to_string(below(3));
        LaneTable& table = tables_[name];
        const Instant fire_at = std::max<Instant>(0, now_ + below(200) - 40);
        const Instant kind = below(10);
        if (kind < 5 || table.timers.empty()) {
            table.timers.push_back({core::wake_of_new_row(fire_at, now_), fire_at, now_});
            note(name, table.timers.back());
            return;
        }
        Timer& timer = table.timers[static_cast<std::size_t>(below(static_cast<Instant>(table.timers.size())))];
        if (!timer.scheduled) return;
        if (with_locks_ && kind == 5) timer.locked = !timer.locked;
        if (timer.locked) return;
        if (kind == 6) {
            timer.scheduled = false;
            return;
        }
        move(name, timer, fire_at);
    }

    void move(const std::string& name, Timer& timer, Instant fire_at) {
        const core::WakeState was{true, timer.wake_at, timer.fire_at};
        const Instant wake_at = core::wake_of_changed_row(was, {true, timer.wake_at, fire_at}, true, now_);
        if (fire_at != timer.fire_at) timer.given_at = now_;
        timer.fire_at = fire_at;
        if (wake_at == timer.wake_at) return;
        timer.wake_at = wake_at;
        note(name, timer);
    }

    void note(const std::string& name, const Timer& timer) {
        Lane& lane = book_.lane(name);
        lane.mark = std::min(lane.mark, timer.wake_at);
        book_.wake(lane, timer.fire_at);
    }

    void check_mark(const Lane& lane) { ASSERT_LE(lane.mark, tables_[lane.name].lowest_wake()) << lane.name; }

    void check_marks() {
        for (const auto& [name, lane] : book_.lanes()) check_mark(lane);
    }

    void check_all_fired() {
        for (const auto& [name, table] : tables_) {
            for (const Timer& timer : table.timers) ASSERT_FALSE(timer.scheduled) << name << ": a timer was lost";
            if (with_locks_) continue;
            // On the dot, for the budget of a pass takes no time here.
            for (const Timer& timer : table.timers) {
                const bool fired = timer.fired_at != never;
                ASSERT_TRUE(!fired || timer.fired_at == std::max(timer.fire_at, timer.given_at)) << name;
            }
            ASSERT_TRUE(std::is_sorted(table.fired_keys.begin(), table.fired_keys.end())) << name;
        }
    }

    std::mt19937_64 random_;
    bool with_locks_;
    Instant now_ = 0;
    LaneBook book_;
    std::map<std::string, LaneTable> tables_;
};

class LaneModel : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LaneModel, FiresEveryTimerOnTheDotAndInOrder) { History(GetParam(), false).run(400); }

TEST_P(LaneModel, LosesNoTimerWhoseRowWasLocked) { History(GetParam(), true).run(400); }

INSTANTIATE_TEST_SUITE_P(Seeds, LaneModel, testing::Range<std::uint64_t>(1, 101));

}  // namespace
