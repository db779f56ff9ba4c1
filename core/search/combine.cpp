// What was measured, put together: greedy combination, and bundles that ran out of memory completed with savers.

#include "core/search/greedy.h"
#include "core/search/operators.h"

namespace infrarsi {

namespace {

constexpr double kLikely = 0.5;  // a completed bundle must be likelier to fit than not
constexpr int kMostInARow = 2;   // runs out of memory, before something else gets a turn

}  // namespace

std::optional<Proposal> combine(const Situation& situation, double least_worth) {
    const Beliefs& beliefs = situation.beliefs;
    const double gate = beliefs.problem().gate;
    const GreedyRules rules{
        .may_move = [&](const Move& move) { return beliefs.is_measured(move.knob->name, move.value); },
        .may_patch = [&](const Patch& patch) { return beliefs.is_measured(patch); },
        .is_wanted =
            [&](const Candidate&, const Estimate& estimate) {
                return estimate.delta > gate && estimate.p_good() * estimate.delta > least_worth;
            }};
    std::optional<Candidate> best;
    Estimate best_estimate;
    for (const Candidate& from : {Candidate{}, beliefs.incumbent()}) {
        const auto grown = grow(situation, from, rules);
        if (!grown) continue;
        const Estimate estimate = beliefs.estimate(*grown);
        if (best && estimate.p_good() * estimate.delta <= best_estimate.p_good() * best_estimate.delta) continue;
        best = grown;
        best_estimate = estimate;
    }
    if (!best) return std::nullopt;
    const std::size_t count = beliefs.items(*best).size();
    return Proposal{
        .candidate = *best,
        .op = "combine",
        .reason = fmt::format("combine the {} best measured changes, {}: expected {:.2f}x against {:.2f}x so "
                              "far, fits with P={:.2f}",
                              count, best->describe(), std::exp(best_estimate.gain), std::exp(beliefs.incumbent_gain()),
                              best_estimate.p_fits),
        .expected_log_gain = best_estimate.gain,
        .sigma = best_estimate.sd,
        .p_fits = best_estimate.p_fits};
}

std::optional<Proposal> complete_bundle(const Situation& situation) {
    const Beliefs& beliefs = situation.beliefs;
    if (beliefs.out_of_memory_in_a_row() > kMostInARow) return std::nullopt;
    std::optional<Proposal> best;
    double best_worth = beliefs.problem().gate;
    for (const Candidate& failed : beliefs.out_of_memory()) {
        if (beliefs.estimate(failed).upside() <= beliefs.problem().gate) continue;
        const auto completed = situation.moves.with_savers(failed, "");
        if (!completed || beliefs.is_visited(completed->candidate)) continue;
        const Estimate estimate = beliefs.estimate(completed->candidate);
        const double worth = estimate.p_good() * estimate.delta;
        if (worth <= best_worth || estimate.p_fits < kLikely) continue;
        best_worth = worth;
        best = Proposal{
            .candidate = completed->candidate,
            .op = "complete",
            .reason = fmt::format("{} ran out of memory but promises much; again with {}: expected {} over the best so "
                                  "far, needs {:.1f} ± {:.1f} GiB, fits with P={:.2f}",
                                  failed.describe(), completed->repair, percent(estimate.delta), estimate.need.mean,
                                  estimate.need.sd, estimate.p_fits),
            .expected_log_gain = estimate.gain,
            .sigma = estimate.sd,
            .p_fits = estimate.p_fits};
    }
    return best;
}

}  // namespace infrarsi
