// Intent: what is counted in a transaction is what it comes to: savepoints that are rolled back take theirs along,
// those that are kept leave it.
#include "core/transaction_counts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using core::TransactionCounts;

std::map<std::string, std::uint64_t> fired_in(const TransactionCounts& counts) {
    std::map<std::string, std::uint64_t> fired;
    counts.each([&](const std::string& lane, const core::LaneCounts& of_lane) { fired[lane] += of_lane.fired; });
    return fired;
}
using Fired = std::map<std::string, std::uint64_t>;

TEST(TransactionCounts, NothingAtFirst) {
    TransactionCounts counts;
    EXPECT_EQ(fired_in(counts), Fired{});
    counts.keep(2);
    counts.roll_back(2);
    EXPECT_EQ(fired_in(counts), Fired{});
}

TEST(TransactionCounts, LanesApart) {
    TransactionCounts counts;
    counts.of("a", 1).fired++;
    counts.of("b", 1).fired += 2;
    counts.of("a", 1).fired++;
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 2}, {"b", 2}}));
    counts.clear();
    EXPECT_EQ(fired_in(counts), Fired{});
    counts.of("a", 1).fired++;
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 1}}));
}

TEST(TransactionCounts, ASavepointTakesItsOwnAlong) {
    TransactionCounts counts;
    counts.of("a", 1).fired++;
    counts.of("a", 2).fired++;
    counts.of("b", 2).fired++;
    counts.roll_back(2);
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 1}}));
    counts.of("a", 1).fired++;
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 2}}));
}

TEST(TransactionCounts, ASavepointLeavesItsOwn) {
    TransactionCounts counts;
    counts.of("a", 1).fired++;
    counts.of("a", 2).fired++;
    counts.of("b", 2).fired++;
    counts.keep(2);
    counts.of("a", 1).fired++;
    counts.of("b", 1).fired++;
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 3}, {"b", 2}}));
}

TEST(TransactionCounts, KeptInsideOneThatIsRolledBack) {
    TransactionCounts counts;
    counts.of("a", 1).fired++;
    counts.of("a", 4).fired++;    // nothing was counted in between
    counts.keep(4);
    counts.keep(3);
    counts.of("b", 2).fired++;
    counts.roll_back(2);
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 1}}));
}

TEST(TransactionCounts, EndsOfOtherDepthsChangeNothing) {
    TransactionCounts counts;
    counts.of("a", 2).fired++;
    counts.keep(3);
    counts.roll_back(3);
    counts.of("a", 2).fired++;
    EXPECT_EQ(fired_in(counts), (Fired{{"a", 2}}));
}

// Beside a model that keeps a full copy of the counts for each depth.
TEST(TransactionCounts, AsAModelSays) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    TransactionCounts counts;
    std::vector<Fired> model{{}};    // what would stand if this depth were the last
    for (int step = 0; step < 20000; step++) {
        const int depth = static_cast<int>(model.size());
        switch (below(6)) {
            case 0:
                if (depth < 6) model.push_back(model.back());
                break;
            case 1:
                if (depth == 1) break;
                counts.keep(depth);
                model.erase(model.end() - 2);
                break;
            case 2:
                if (depth == 1) break;
                counts.roll_back(depth);
                model.pop_back();
                break;
            default: {
                const std::string lane(1, static_cast<char>('a' + below(3)));
                counts.of(lane, depth).fired++;
                model.back()[lane]++;
            }
        }
        ASSERT_EQ(fired_in(counts), model.back()) << "step " << step;
    }
}

}  // namespace
