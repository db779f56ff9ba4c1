#include "core/bench/campaign_score.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace infrarsi::bench {

namespace {

bool is_deliverable(const sim::Truth& truth, const Rehearsal& rehearsal, const sim::Candidate& candidate) {
    if (truth.kind != sim::Kind::ok) return false;
    for (int patch = 0; patch < static_cast<int>(rehearsal.job().patches.size()); ++patch) {
        if (candidate.has_patch(patch) && !rehearsal.works(patch)) return false;
    }
    return true;
}

std::optional<double> cost_to(double log_gain, const sim::Workload& workload, const Rehearsal& rehearsal) {
    for (const Incumbent& incumbent : rehearsal.incumbents()) {
        if (delivered_log_gain(workload, rehearsal, incumbent.candidate) >= log_gain) return incumbent.spent_units;
    }
    return std::nullopt;
}

nlohmann::json number_or_null(const std::optional<double>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

}  // namespace

double delivered_log_gain(const sim::Workload& workload, const Rehearsal& rehearsal, const sim::Candidate& candidate) {
    const sim::Truth truth = sim::truth(workload, candidate);
    return is_deliverable(truth, rehearsal, candidate) ? -std::log(truth.rel_time) : 0;
}

CampaignScore score_campaign(const sim::Workload& workload, double oracle_log_gain, const Strategy& strategy,
                             std::uint64_t seed, double budget_units, const Clock& clock) {
    Rehearsal rehearsal(workload, seed, budget_units, clock);
    const double answering_before_s = rehearsal.own_seconds();
    const auto start = clock.monotonic();
    const Delivery delivery = strategy.run(rehearsal);
    const std::chrono::duration<double> passed = clock.monotonic() - start;
    CampaignScore score;
    score.workload = workload.name;
    score.strategy = strategy.name;
    score.seed = seed;
    score.trials = rehearsal.trials();
    score.cost_units = rehearsal.spent_units();
    score.controller_s = std::max(0.0, passed.count() - (rehearsal.own_seconds() - answering_before_s));
    if (delivery.candidate) {
        const sim::Truth truth = sim::truth(workload, *delivery.candidate);
        score.valid = is_deliverable(truth, rehearsal, *delivery.candidate);
        if (score.valid) score.true_speedup = 1 / truth.rel_time;
    }
    score.cost_to_50 = cost_to(0.50 * oracle_log_gain, workload, rehearsal);
    score.cost_to_75 = cost_to(0.75 * oracle_log_gain, workload, rehearsal);
    score.cost_to_90 = cost_to(0.90 * oracle_log_gain, workload, rehearsal);
    return score;
}

nlohmann::json to_json(const CampaignScore& score) {
    return {{"workload", score.workload},
            {"strategy", score.strategy},
            {"seed", score.seed},
            {"true_speedup", score.true_speedup},
            {"valid", score.valid},
            {"trials", score.trials},
            {"cost_units", score.cost_units},
            {"cost_to_50", number_or_null(score.cost_to_50)},
            {"cost_to_75", number_or_null(score.cost_to_75)},
            {"cost_to_90", number_or_null(score.cost_to_90)},
            {"controller_s", score.controller_s}};
}

}  // namespace infrarsi::bench
