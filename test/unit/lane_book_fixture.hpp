// What the tests of the lane book share: a book, lanes in a known state, and the names of what is due.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/lane_book.hpp"

using Names = std::vector<std::string>;

// What the lanes of one pass share.
inline constexpr std::int64_t budget = 1000;

inline core::LaneSettings settings_of(core::Delivery delivery, bool paused = false) {
    core::LaneSettings settings;
    settings.delivery = delivery;
    settings.paused = paused;
    return settings;
}

class LaneBookFixture : public testing::Test {
protected:
    // A lane that has been scanned once and found empty until `next`.
    core::Lane& lane_waiting_until(const std::string& name, core::Instant next) {
        core::Lane& lane = book.lane(name);
        book.scanned(lane, {}, 0, next);
        return lane;
    }

    Names due_at(core::Instant now) {
        Names names;
        for (const core::Lane* lane : book.due(now, 1000, budget)) names.push_back(lane->name);
        return names;
    }

    core::LaneBook book;
};
