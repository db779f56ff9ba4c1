#pragma once
// What many scores say about a strategy on a workload (SIMULATOR.md §10): a median with its 10 % and 90 %, the mean ln
// speed-up, which is what strategies are compared by, and a paired bootstrap interval of its difference, since all
// strategies meet the same luck for the same seed.

#include "core/bench/campaign_score.h"

namespace infrarsi::bench {

struct CellSummary {
    std::string workload, strategy;
    int seeds = 0;
    double median = 1, p10 = 1, p90 = 1;  // true speed-up
    double mean_ln = 0;
    double share_to_90 = 0;                   // of the seeds that reached 90 % of the oracle's ln
    std::optional<double> median_cost_to_90;  // never counts as infinite; nothing: the median is
    double invalid_share = 0;                 // of the winners
    double mean_trials = 0, mean_cost_units = 0;
    double mean_controller_s = 0;
    // Mean ln less that of the first strategy on the same seeds, with its 95 % interval; nothing for the first.
    std::optional<double> difference, difference_low, difference_high;
};

// `scores` as run_search_bench gives them: by workload, strategy and seed, as many seeds for each. Deterministic: 2000
// resamples with a fixed seed.
[[nodiscard]] std::vector<CellSummary> summarise(const std::vector<CampaignScore>& scores);

[[nodiscard]] nlohmann::json to_json(const CellSummary& summary);

// A table for people, one block a workload.
[[nodiscard]] std::string render_table(const std::vector<CellSummary>& summaries);

// The p-quantile of values sorted ascending (at least one), linear between neighbours; infinite values are allowed.
[[nodiscard]] double quantile_of_sorted(const std::vector<double>& sorted, double p);

}  // namespace infrarsi::bench
