#pragma once
// The operators: each proposes one candidate from the beliefs, or nothing. The controller asks them in turn; the full
// controller of paper §4 adds operators here. All are pure; `Random` is seeded from the problem and the trial number.

#include <optional>
#include <vector>

#include "core/search/beliefs.h"
#include "core/search/controller.h"
#include "core/search/moves.h"

namespace infrarsi {

// Everything an operator sees.
struct Situation {
    const Beliefs& beliefs;
    const Moves& moves;
    const std::vector<Patch>& offered;  // patches of the source, in order of promise
};

// Start 1: the configuration that the prior rates highest, grown greedily from the reference; it differs in at least
// one big knob, or there is none and the operator has nothing.
[[nodiscard]] std::optional<Proposal> start_with_prior(const Situation& situation);
// Start 2, and a slot later on: a uniform random legal configuration.
[[nodiscard]] std::optional<Proposal> random_configuration(const Situation& situation, const char* op);
// Start 3: the single setting with the highest expected gain × chance, from the reference.
[[nodiscard]] std::optional<Proposal> start_with_strongest(const Situation& situation);

// The user's own patches, each once, alone on the incumbent.
[[nodiscard]] std::optional<Proposal> user_patch(const Situation& situation);

// One setting or patch on the incumbent, whose two-sigma upside clears the gate: by (expected gain + σ) × chance.
[[nodiscard]] std::optional<Proposal> probe(const Situation& situation);
// As probe, but among those that the beliefs rate low (no expected gain, or little chance to fit before a saver is
// attached) and nobody measured: the one with the largest two-sigma upside × chance.
[[nodiscard]] std::optional<Proposal> contrarian_probe(const Situation& situation);

// The best union of measured settings and patches: posterior mean, priced by the chance to fit and to pass. Only when
// it promises more than the incumbent by the gate, and chance × that promise is over `least_worth` (log units).
[[nodiscard]] std::optional<Proposal> combine(const Situation& situation, double least_worth);

// A candidate that ran out of memory but promises much, completed with settings that cover the shortfall.
[[nodiscard]] std::optional<Proposal> complete_bundle(const Situation& situation);

// +18 %, −3 %: a log gain as a person reads it.
[[nodiscard]] std::string percent(double log_gain);

}  // namespace infrarsi
