// How many of what size: counts in fixed buckets, and the sum. Zero when its memory is, so that it can live in shared
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/instant.hpp"

namespace core {

// `edges`: the highest value of each bucket but the last, ascending.
template <const auto& edges>
struct Histogram {
    static constexpr std::size_t size = std::size(edges) + 1;

    std::uint64_t buckets[size];
    std::uint64_t sum;

    // A value below zero counts as zero.
    void observe(std::int64_t value) {
        std::size_t bucket = 0;
        while (bucket + 1 < size && value > edges[bucket]) bucket++;
        buckets[bucket]++;
        if (value > 0) sum += static_cast<std::uint64_t>(value);
    }

    void add(const Histogram& other) {
        for (std::size_t i = 0; i < size; i++) buckets[i] += other.buckets[i];
        sum += other.sum;
    }
};

// Spans of time, in microseconds.
inline constexpr std::int64_t span_edges[] = {
    1 * millisecond,   2 * millisecond,   5 * millisecond,   10 * millisecond, 20 * millisecond, 50 * millisecond,
    100 * millisecond, 200 * millisecond, 500 * millisecond, 1 * second,       2 * second,       5 * second,
    10 * second,       30 * second,       1 * minute,        10 * minute,      60 * minute};

// Numbers of attempts.
inline constexpr std::int64_t attempt_edges[] = {1, 2, 3, 5, 10, 20, 50, 100};

using SpanHistogram = Histogram<span_edges>;
using AttemptHistogram = Histogram<attempt_edges>;

}  // namespace core
