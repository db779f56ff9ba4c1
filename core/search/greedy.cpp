#include "core/search/greedy.h"

namespace infrarsi {

namespace {

constexpr double kLeastStep = 1e-4;  // log units; smaller improvements are rounding
constexpr int kMostSteps = 64;

// Chance × total gain: where a failure leaves the reference. Over the incumbent it would be 0 at the start for all.
double value_of(const Estimate& estimate) {
    return estimate.p_good() * estimate.gain;
}

}  // namespace

std::optional<Candidate> grow(const Situation& situation, const Candidate& from, const GreedyRules& rules) {
    const Beliefs& beliefs = situation.beliefs;
    Candidate current = from;
    double value = from.is_reference() ? 0 : value_of(beliefs.estimate(from));
    std::optional<Candidate> answer;
    double answer_value = 0;
    for (int step = 0; step < kMostSteps; ++step) {
        std::optional<Candidate> best;
        double best_value = value + kLeastStep;
        const auto consider = [&](const Candidate& next) {
            const Estimate estimate = beliefs.estimate(next);
            const double next_value = value_of(estimate);
            const double over_incumbent = estimate.p_good() * estimate.delta;
            if ((!answer || over_incumbent > answer_value) && !beliefs.is_visited(next) &&
                rules.is_wanted(next, estimate)) {
                answer = next;
                answer_value = over_incumbent;
            }
            if (next_value <= best_value) return;
            best_value = next_value;
            best = next;
        };
        for (const Move& move : situation.moves.all()) {
            if (!same_effect(move.value, move.knob->reference) && !rules.may_move(move)) continue;
            const auto next = situation.moves.apply(current, move);
            if (next && next->settings != current.settings) consider(*next);
        }
        for (const Patch& patch : situation.offered) {
            if (!rules.may_patch(patch)) continue;
            if (const auto next = situation.moves.with_patch(current, patch)) consider(*next);
        }
        for (std::size_t i = 0; i < current.patches.size(); ++i) {
            Candidate next = current;
            next.patches.erase(next.patches.begin() + static_cast<std::ptrdiff_t>(i));
            consider(next);
        }
        if (!best) break;
        current = std::move(*best);
        value = best_value;
    }
    return answer;
}

}  // namespace infrarsi
