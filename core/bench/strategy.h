#pragma once
// A way of searching that can be compared with others on simulated jobs, and the list of those that can be named.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bench/rehearsal.h"

namespace infrarsi::bench {

// What a campaign hands over; nothing: the job stays as it is.
struct Delivery {
    std::optional<sim::Candidate> candidate;
};

struct Strategy {
    std::string name;
    // Plays one campaign: runs trials, reports its incumbents, may promote. Called from several threads at once, each
    // with its own rehearsal; deterministic in what the rehearsal shows.
    std::function<Delivery(Rehearsal&)> run;
};

// All strategies that can be named: our planner, then the baselines of SIMULATOR.md §8. To plug in another, add its
// maker here.
[[nodiscard]] std::vector<Strategy> all_strategies();

// not_found with the nearest name.
[[nodiscard]] Expected<Strategy> find_strategy(std::string_view name);

}  // namespace infrarsi::bench
