// Gathers the metrics of this database: what is there, as in timers.overview, and what was counted, from shared memory.
#pragma once

#include <vector>

#include "core/metrics.hpp"

namespace engine {

// Without shared memory, or without a place in it, what is counted there has no value.
std::vector<core::Sample> gather_metrics();

}  // namespace engine
