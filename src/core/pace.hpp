// The dispatcher's pace through a backlog: as fast as it can, but nobody else is late for it. Rows are taken in portions; a
// transaction takes portion after portion until it has its batch or somebody else is due, and for somebody who will be due
// before another portion could be committed the dispatcher holds still. It holds still for a tenth of its time at most.
//
// Learns from what it is told how long portions and commits take. Spans are microseconds.
#pragma once

#include <cstdint>

#include "core/instant.hpp"

namespace core {

class Pace {
public:
    // How many rows the next portion may take: what is done in a millisecond or, while nobody else is expected, in ten.
    std::int64_t portion(bool alone) const;

    // A portion of so many rows, or a commit, has taken so long.
    void took(std::int64_t rows, std::int64_t span);
    void committed(std::int64_t span);

    // Whether the transaction under way goes on with another portion, with somebody else due at `other`.
    bool goes_on(Instant now, Instant other) const;

    // Whether to hold still until `other` instead of beginning a transaction now.
    bool hold(Instant now, Instant other);

private:
    bool too_late(Instant now, Instant other) const;
    bool may_hold(Instant now, Instant other) const;

    double rows_per_millisecond_ = 50;
    double commit_ = millisecond;
    Instant held_until_ = distant_past;
};

}  // namespace core
