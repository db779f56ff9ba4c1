#pragma once
// Every strategy on every workload with every seed, over threads. All but the strategies' own time is the same whatever
// the number of threads, since a campaign depends on its workload, strategy and seed alone.

#include "core/bench/campaign_score.h"

namespace infrarsi::bench {

struct SearchBench {
    std::vector<sim::Workload> workloads;
    std::vector<Strategy> strategies;
    std::uint64_t first_seed = 0, seeds = 200;  // first_seed, first_seed + 1, …
    double budget_units = kDefaultBudgetUnits;
    int threads = 1;
};

// Scores by workload, then strategy, then seed; `on_score` sees each in that order as soon as those before it are done,
// on whichever thread, never two at once. invalid_input: a workload whose reference cannot be delivered, whose window
// has fewer than two updates, or that shares its name with another.
[[nodiscard]] Expected<std::vector<CampaignScore>> run_search_bench(
    const SearchBench& bench, const Clock& clock, const std::function<void(const CampaignScore&)>& on_score = {});

}  // namespace infrarsi::bench
