#pragma once
// The single changes to a receipt that the test matrix makes: each is one cheat or fault, or one harmless variation.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/verify/verdict.h"

namespace infrarsi {

struct Perturbation {
    std::string name;
    std::optional<InvariantId> expected;  // the item that must reject; nothing: must be accepted
    // Changes the candidate's receipt; false when the receipt lacks what it would change.
    std::function<bool(Receipt& candidate, const ReferenceEvidence& reference)> apply;
};

[[nodiscard]] std::vector<Perturbation> harmful_perturbations();
[[nodiscard]] std::vector<Perturbation> benign_perturbations();

}  // namespace infrarsi
