// The three starts without experience.

#include "core/search/greedy.h"
#include "core/search/operators.h"

namespace infrarsi {

namespace {

Proposal proposal_of(const Beliefs& beliefs, const Candidate& candidate, const char* op, std::string reason) {
    const Estimate estimate = beliefs.estimate(candidate);
    return {.candidate = candidate,
            .op = op,
            .reason = std::move(reason),
            .expected_log_gain = estimate.gain,
            .sigma = estimate.sd,
            .p_fits = estimate.p_fits};
}

}  // namespace

std::string percent(double log_gain) {
    const double percents = 100 * std::expm1(log_gain);
    return fmt::format("{}{:.{}f} %", percents < 0 ? "−" : "+", std::abs(percents), std::abs(percents) < 9.95 ? 1 : 0);
}

std::optional<Proposal> start_with_prior(const Situation& situation) {
    const Beliefs& beliefs = situation.beliefs;
    const auto has_big_knob = [&](const Candidate& candidate, const Estimate& /*estimate*/) {
        for (const auto& [name, value] : candidate.settings) {
            if (beliefs.is_big(name)) return true;
        }
        return false;
    };
    const auto candidate = grow(situation, {},
                                {.may_move = [](const Move&) { return true; },
                                 .may_patch = [](const Patch&) { return false; },
                                 .is_wanted = has_big_knob});
    if (!candidate) return std::nullopt;
    const Estimate estimate = beliefs.estimate(*candidate);
    return proposal_of(
        beliefs, *candidate, "start:prior",
        fmt::format("start from the configuration that the mechanisms rate highest, {}: expected {} ± {:.0f} "
                    "%, fits with P={:.2f}",
                    describe(candidate->settings), percent(estimate.gain), 100 * estimate.sd, estimate.p_fits));
}

std::optional<Proposal> random_configuration(const Situation& situation, const char* op) {
    const Beliefs& beliefs = situation.beliefs;
    // A new stream for each trial, and the same one when a trial is repeated after a host's fault.
    Random random(beliefs.problem().seed ^ (0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(beliefs.trials() + 1)));
    const auto candidate = situation.moves.random(random);
    if (!candidate) return std::nullopt;
    return proposal_of(
        beliefs, *candidate, op,
        fmt::format("try a random legal configuration, {}, to see what single changes cannot reach; fits "
                    "with P={:.2f}",
                    describe(candidate->settings), beliefs.estimate(*candidate).p_fits));
}

std::optional<Proposal> start_with_strongest(const Situation& situation) {
    const Beliefs& beliefs = situation.beliefs;
    std::optional<Candidate> best;
    double best_value = 0;
    for (const Move& move : situation.moves.all()) {
        if (same_effect(move.value, move.knob->reference)) continue;
        const auto candidate = situation.moves.apply({}, move);
        if (!candidate || candidate->is_reference() || beliefs.is_visited(*candidate)) continue;
        const Estimate estimate = beliefs.estimate(*candidate);
        const double value = estimate.p_good() * estimate.gain;
        if (value <= best_value) continue;
        best_value = value;
        best = candidate;
    }
    if (!best) return std::nullopt;
    const Estimate estimate = beliefs.estimate(*best);
    return proposal_of(
        beliefs, *best, "start:strongest",
        fmt::format("start with the strongest single setting, {}: expected {} ± {:.0f} %, fits with "
                    "P={:.2f}",
                    describe(best->settings), percent(estimate.gain), 100 * estimate.sd, estimate.p_fits));
}

}  // namespace infrarsi
