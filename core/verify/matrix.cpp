#include "core/verify/matrix.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/verify/perturbations.h"

namespace infrarsi {
namespace {

using nlohmann::json;

struct Tally {
    int applied = 0, right = 0;
    json rows = json::array();
};

// Runs each perturbation on a copy. One that needs a field that the receipt lacks is a row with `skipped`, and counts
// neither way.
void run(const std::vector<Perturbation>& perturbations, const Receipt& candidate, const ReferenceEvidence& reference,
         const InvariantRules& rules, Tally& tally) {
    for (const auto& perturbation : perturbations) {
        auto changed = candidate;
        const auto* expected = perturbation.expected ? "reject" : "accept";
        json row = {{"name", perturbation.name}, {"expected", expected}, {"invariant", nullptr}};
        if (perturbation.expected) {
            row["invariant"] = to_string(*perturbation.expected);
        }
        if (!perturbation.apply(changed, reference)) {
            row["got"] = "skipped";
            row["ok"] = nullptr;
            tally.rows.push_back(std::move(row));
            continue;
        }
        const auto verdict = judge(changed, reference, rules);
        const auto rejecting = verdict.rejecting(rules);
        // For a fault the item that is made for it must be among those that reject.
        const bool ok = perturbation.expected
                            ? std::find(rejecting.begin(), rejecting.end(), *perturbation.expected) != rejecting.end()
                            : verdict.valid;
        row["got"] = verdict.valid ? "accept" : "reject";
        row["reason"] = verdict.reason;
        row["ok"] = ok;
        ++tally.applied;
        tally.right += ok ? 1 : 0;
        tally.rows.push_back(std::move(row));
    }
}

}  // namespace

Expected<json> run_matrix(const Receipt& candidate, const ReferenceEvidence& reference, const InvariantRules& rules) {
    const auto plain = judge(candidate, reference, rules);
    if (!plain.valid) {
        return fail(
            ErrorKind::invalid_input,
            "the matrix perturbs a valid candidate, and this one is rejected: {}; give it the receipt of a valid "
            "run",
            plain.reason);
    }
    Tally harmful, benign;
    run(harmful_perturbations(), candidate, reference, rules, harmful);
    run(benign_perturbations(), candidate, reference, rules, benign);
    auto rows = std::move(harmful.rows);
    for (auto& row : benign.rows) {
        rows.push_back(std::move(row));
    }
    return json{{"perturbed", harmful.applied},
                {"perturbed_rejected", harmful.right},
                {"benign", benign.applied},
                {"benign_accepted", benign.right},
                {"rows", std::move(rows)}};
}

}  // namespace infrarsi
