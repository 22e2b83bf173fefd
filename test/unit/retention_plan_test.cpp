// Intent: sweeping a lane finds everything that has expired, stops at what has not, comes back when that will have, and
// always comes to an end.
#include "core/retention_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace {

using core::distant_past;
using core::Instant;
using core::later_by;
using core::never;
using core::RetentionPlan;
using core::Sweep;

constexpr std::int64_t retention = 1000;
constexpr std::int64_t pause = 10;

Sweep empty_step() { return {}; }

Sweep full_step(Instant last_wake) {
    Sweep sweep;
    sweep.full = true;
    sweep.last_wake = last_wake;
    return sweep;
}

Sweep kept_step(Instant wake_at, Instant ended) {
    Sweep sweep;
    sweep.last_wake = wake_at;
    sweep.kept_wake = wake_at;
    sweep.kept_ended = ended;
    return sweep;
}

TEST(RetentionPlan, BeginsAtOnceFromTheBeginning) {
    const RetentionPlan plan;
    EXPECT_EQ(plan.due(), distant_past);
    EXPECT_EQ(plan.from(), distant_past);
}

TEST(RetentionPlan, GoesOnAtOnceWhileThereIsMore) {
    RetentionPlan plan;
    plan.swept(full_step(50), 5000, retention, pause);
    EXPECT_LE(plan.due(), 5000);
    EXPECT_EQ(plan.from(), 50);
    plan.swept(full_step(70), 5000, retention, pause);
    EXPECT_LE(plan.due(), 5000);
    EXPECT_EQ(plan.from(), 70);
}

TEST(RetentionPlan, RestsWhenNothingIsLeft) {
    RetentionPlan plan;
    plan.swept(empty_step(), 5000, retention, pause);
    EXPECT_GE(plan.due(), 5000 + pause);
    // What ends from now on cannot have expired before.
    EXPECT_LE(plan.due(), 5000 + retention);
}

TEST(RetentionPlan, ComesBackWhenTheFirstThatIsKeptExpires) {
    RetentionPlan plan;
    plan.swept(kept_step(60, 4500), 5000, retention, pause);
    EXPECT_EQ(plan.from(), 60);
    EXPECT_EQ(plan.due(), 4500 + retention);
}

TEST(RetentionPlan, RestsInAnyCase) {
    RetentionPlan plan;
    plan.swept(kept_step(60, 5000 - retention), 5000, retention, pause);
    EXPECT_EQ(plan.due(), 5000 + pause);
    plan.swept(empty_step(), 6000, 1, pause);
    EXPECT_EQ(plan.due(), 6000 + pause);
}

TEST(RetentionPlan, NeverGoesBackByItself) {
    RetentionPlan plan;
    plan.swept(full_step(70), 5000, retention, pause);
    plan.swept(empty_step(), 5000, retention, pause);
    EXPECT_EQ(plan.from(), 70);
}

TEST(RetentionPlan, StartsAgainWhenAsked) {
    RetentionPlan plan;
    plan.swept(full_step(70), 5000, retention, pause);
    plan.start_again();
    EXPECT_EQ(plan.due(), distant_past);
    EXPECT_EQ(plan.from(), distant_past);
}

TEST(RetentionPlan, KeepsForEverWithoutOverflow) {
    RetentionPlan plan;
    plan.swept(kept_step(60, 5000), 5000, INT64_MAX, pause);
    EXPECT_EQ(plan.due(), never);
    plan.swept(empty_step(), 5000, INT64_MAX, pause);
    EXPECT_EQ(plan.due(), never);
}

// A lane's rows behind the mark, and the step that sweeps them.
struct Row {
    Instant wake_at;
    std::optional<Instant> ended;  // none: dead, or at work
    bool gone = false;
};

Sweep step(std::vector<Row>& rows, Instant from, Instant before, std::size_t most) {
    std::vector<Row*> seen;
    for (Row& row : rows)
        if (!row.gone && row.wake_at >= from) seen.push_back(&row);
    std::stable_sort(seen.begin(), seen.end(), [](const Row* a, const Row* b) { return a->wake_at < b->wake_at; });
    Sweep sweep;
    sweep.full = seen.size() >= most;
    if (sweep.full) seen.resize(most);
    if (!seen.empty()) sweep.last_wake = seen.back()->wake_at;
    for (Row* row : seen) {
        if (!row->ended) continue;
        if (*row->ended < before) {
            row->gone = true;
        } else if (sweep.kept_wake == never) {
            sweep.kept_wake = row->wake_at;
            sweep.kept_ended = *row->ended;
        }
    }
    return sweep;
}

// Sweeps until the plan rests, and says how many steps that took; nothing when it does not.
std::optional<int> steps_until_rest(RetentionPlan& plan, std::vector<Row>& rows, Instant now) {
    for (int steps = 0; steps < 1000; steps++) {
        if (plan.due() > now) return steps;
        plan.swept(step(rows, plan.from(), later_by(now, -retention), static_cast<std::size_t>(plan.rows())), now,
                   retention, pause);
    }
    return std::nullopt;
}

TEST(RetentionSweep, RestsOverRowsThatNeverExpire) {
    std::vector<Row> rows(100, Row{50, std::nullopt});
    rows.push_back({60, 70});
    RetentionPlan plan(10);
    const auto steps = steps_until_rest(plan, rows, 5000);
    ASSERT_TRUE(steps.has_value()) << "it sweeps the same rows for ever";
    EXPECT_TRUE(rows.back().gone) << "what lies behind them is not reached";
}

class RetentionHistory : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RetentionHistory, DeletesWhatExpiresSoonAfterItDoes) {
    std::mt19937_64 random(GetParam());
    const auto below = [&](std::uint64_t limit) { return static_cast<Instant>(random() % limit); };
    std::vector<Row> rows;
    RetentionPlan plan(7);
    Instant now = 5000;
    for (int i = 0; i < 50; i++) {
        // Timers end at now, in the order of wake_at; a few never do.
        const Instant count = below(40);
        for (Instant n = 0; n < count; n++) {
            Row row{now, now};
            if (below(10) == 0) row.ended.reset();
            rows.push_back(row);
        }
        now += 1 + below(300);
        ASSERT_TRUE(steps_until_rest(plan, rows, now).has_value());
        for (const Row& row : rows)
            ASSERT_TRUE(row.gone || !row.ended || *row.ended + retention + pause + 300 > now)
                << "a row is kept too long";
    }
    for (const Row& row : rows) ASSERT_TRUE(!row.gone || row.ended) << "what had not ended was deleted";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RetentionHistory, testing::Range<std::uint64_t>(1, 31));

}  // namespace
