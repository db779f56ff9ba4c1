#pragma once
// The verifier's test matrix (paper §6.3): single perturbations of real receipts that must be rejected by the right
// invariant, and benign variants that must be accepted.

#include <nlohmann/json_fwd.hpp>

#include "core/verify/verdict.h"

namespace infrarsi {

// {perturbed, perturbed_rejected, benign, benign_accepted, rows: [{name, expected, got, invariant, ok}]}. `candidate`
// must be a valid candidate's receipt against `reference` under `rules`; invalid_input otherwise. A perturbation that
// these receipts have no place for is a row with got "skipped" and ok null, and counts nowhere.
[[nodiscard]] Expected<nlohmann::json> run_matrix(const Receipt& candidate, const ReferenceEvidence& reference,
                                                  const InvariantRules& rules);

}  // namespace infrarsi
