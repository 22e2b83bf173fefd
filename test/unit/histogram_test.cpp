// Intent: each value is counted once, in the first bucket that it does not exceed, and the sum is that of the values.
#include "core/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

namespace {

constexpr std::int64_t edges[] = {10, 20, 50};
using Small = core::Histogram<edges>;

std::vector<std::uint64_t> buckets_of(const Small& histogram) {
    return {std::begin(histogram.buckets), std::end(histogram.buckets)};
}

TEST(Histogram, AnEdgeBelongsToItsBucket) {
    Small histogram{};
    for (const std::int64_t value : {0, 10, 11, 20, 21, 50, 51, 1000}) histogram.observe(value);
    EXPECT_EQ(buckets_of(histogram), (std::vector<std::uint64_t>{2, 2, 2, 2}));
    EXPECT_EQ(histogram.sum, 0U + 10 + 11 + 20 + 21 + 50 + 51 + 1000);
}

TEST(Histogram, BelowZeroIsZero) {
    Small histogram{};
    histogram.observe(-1);
    histogram.observe(INT64_MIN);
    EXPECT_EQ(buckets_of(histogram), (std::vector<std::uint64_t>{2, 0, 0, 0}));
    EXPECT_EQ(histogram.sum, 0U);
}

TEST(Histogram, TheLargestHasItsPlace) {
    Small histogram{};
    histogram.observe(INT64_MAX);
    EXPECT_EQ(buckets_of(histogram), (std::vector<std::uint64_t>{0, 0, 0, 1}));
    EXPECT_EQ(histogram.sum, static_cast<std::uint64_t>(INT64_MAX));
}

TEST(Histogram, AddingIsObservingBoth) {
    Small one{}, other{}, both{};
    for (const std::int64_t value : {1, 15, 60}) {
        one.observe(value);
        both.observe(value);
    }
    for (const std::int64_t value : {30, 15}) {
        other.observe(value);
        both.observe(value);
    }
    one.add(other);
    EXPECT_EQ(buckets_of(one), buckets_of(both));
    EXPECT_EQ(one.sum, both.sum);
    EXPECT_EQ(std::accumulate(std::begin(one.buckets), std::end(one.buckets), std::uint64_t{0}), 5U);
}

TEST(Histogram, EdgesAscend) {
    EXPECT_TRUE(std::is_sorted(std::begin(core::span_edges), std::end(core::span_edges)));
    EXPECT_TRUE(std::is_sorted(std::begin(core::attempt_edges), std::end(core::attempt_edges)));
}

}  // namespace
