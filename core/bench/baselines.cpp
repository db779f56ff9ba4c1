#include "core/bench/baselines.h"

namespace infrarsi::bench {

namespace {

// OptiCo: an optimizer's assistant that knows knobs, not code.
constexpr AgentRules kCoordinate = {.knobs_only = true,
                                    .temperature = 0.02,
                                    .stray = 0.15,
                                    .judgement = 0.35,
                                    .two = 0.20,
                                    .pair = 0.20,
                                    .repeat = 0.15,
                                    .most_proposals = 20};

// Auto-Research: one change after the other, kept where it helps.
constexpr AgentRules kGreedy = {.temperature = 0.012,
                                .stray = 0.05,
                                .judgement = 0.75,
                                .uses_familiarity = true,
                                .pair = 0.10,
                                .repeat = 0.10,
                                .support = sim::Support::feedback};

// RE-Bench: the best of four suggestions.
constexpr AgentRules best_of_four() {
    AgentRules rules = kGreedy;
    rules.options = 4;
    rules.two = 0.20;
    rules.pair = 0.30;
    return rules;
}

std::vector<Strategy> with_trust(const std::string& suffix, Trust trust) {
    return {random_search("random" + suffix, trust), tpe_search("tpe" + suffix, trust),
            agent_search("coordinate" + suffix, trust, kCoordinate), agent_search("greedy" + suffix, trust, kGreedy),
            agent_search("best-of-4" + suffix, trust, best_of_four())};
}

}  // namespace

std::optional<double> BestSoFar::gain_of(const Trial& trial) const {
    const bool counts = trust_ == Trust::verified ? trial.is_valid() : trial.completed();
    return counts ? trial.log_gain : std::nullopt;
}

bool BestSoFar::offer(const Trial& trial) {
    const auto gain = gain_of(trial);
    if (!gain || *gain <= gain_) return false;
    gain_ = *gain;
    candidate_ = trial.plan.candidate;
    rehearsal_.set_incumbent(candidate_);
    return true;
}

std::vector<Strategy> baselines() {
    std::vector<Strategy> all = with_trust("", Trust::verified);
    for (Strategy& strategy : with_trust("-unverified", Trust::whatever_completes)) all.push_back(std::move(strategy));
    return all;
}

}  // namespace infrarsi::bench
