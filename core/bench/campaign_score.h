#pragma once
// What a rehearsed campaign was worth, by the truth that its strategy never saw. Source: SIMULATOR.md §6.

#include <nlohmann/json_fwd.hpp>

#include "core/bench/strategy.h"

namespace infrarsi::bench {

struct CampaignScore {
    std::string workload, strategy;
    std::uint64_t seed = 0;
    double true_speedup = 1;  // of what was delivered; 1 if nothing was, or nothing that can be delivered
    bool valid = true;        // nothing invalid was delivered
    int trials = 0;
    double cost_units = 0;
    // Cost when the incumbent first had this share of the oracle's ln speed-up; nothing: never.
    std::optional<double> cost_to_50, cost_to_75, cost_to_90;
    double controller_s = 0;  // the strategy's own time: the only figure that differs from run to run
};

// ln of the speed-up that would be delivered: 0 unless the candidate's kind is ok and its patches work.
[[nodiscard]] double delivered_log_gain(const sim::Workload& workload, const Rehearsal& rehearsal,
                                        const sim::Candidate& candidate);

// Plays the campaign and scores it. `oracle_log_gain` is ln of the oracle's speed-up.
[[nodiscard]] CampaignScore score_campaign(const sim::Workload& workload, double oracle_log_gain,
                                           const Strategy& strategy, std::uint64_t seed, double budget_units,
                                           const Clock& clock);

// `{workload, strategy, seed, true_speedup, valid, trials, cost_units, cost_to_50, cost_to_75, cost_to_90,
// controller_s}`; null for never.
[[nodiscard]] nlohmann::json to_json(const CampaignScore& score);

}  // namespace infrarsi::bench
