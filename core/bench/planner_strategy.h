#pragma once
// Our own planner (core/search/planner.h) as a strategy of the bench. Source: SIMULATOR.md §10.3 for what it may see.

#include "core/bench/strategy.h"

namespace infrarsi::bench {

// `infrarsi`: screens with runs of a few updates past the warm-up, confirms at full length, promotes up to three.
// `infrarsi-full`: the same with full runs only.
[[nodiscard]] std::vector<Strategy> planner_strategies();

}  // namespace infrarsi::bench
