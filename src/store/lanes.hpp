// Process managers and their stored marks. Every function opens its own SPI session, under the rights of the
// extension's owner.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "core/instant.hpp"
#include "core/lane_book.hpp"

namespace store {

// Whether the process manager has its row, as of the newest snapshot; ours: written by the transaction under way.
enum class LaneRow { none, ours, committed };
LaneRow lane_row(std::string_view lane);
void insert_lane(std::string_view lane);

// The settings of a process manager, if it has a row.
std::optional<core::LaneSettings> lane_settings(std::string_view lane);

// The settings of every process manager that has a row.
void each_lane_settings(const std::function<void(std::string_view lane, core::LaneSettings settings)>& visit);

// Every lane that has timers, row or not.
void each_lane_with_timers(const std::function<void(std::string_view lane)>& visit);

// The stored marks.
void each_safe_mark(const std::function<void(std::string_view lane, core::Instant safe_at)>& visit);
core::Instant safe_mark(std::string_view lane);
// The highest of all, distant_past when there is none.
core::Instant highest_safe_mark();
void store_safe_mark(std::string_view lane, core::Instant safe_at);

}  // namespace store
