#pragma once
// What the search knows: every trial so far, as outcomes. A view made by the campaign from its journal; the search
// never reads files.

#include <optional>
#include <string>
#include <vector>

#include "core/contract/constraint.h"
#include "core/contract/contract.h"
#include "core/trial/candidate.h"

namespace infrarsi {

enum class OutcomeKind {
    valid,        // passed every invariant that can be judged before promotion
    rejected,     // ran, but broke the contract
    oom,          // needs more memory than there is
    failed,       // crash, hang, divergence, time-out
    ineffective,  // a setting did not take effect: no measurement
    transient     // the host's fault; says nothing about the candidate
};

struct Outcome {
    int trial = 0;
    Candidate candidate;
    OutcomeKind kind = OutcomeKind::failed;
    double log_speedup = 0;          // ln(T_ref / T_cand) of window medians; valid only
    double sigma = 0;                // its standard error, log units
    std::optional<double> peak_gib;  // completed runs
    std::optional<double> need_gib;  // oom: lower bound of the need
    double cost_s = 0;               // seconds the trial took
    std::string reason;              // verdict or failure in a sentence
};

// Share of step time by phase at the reference, for Amdahl caps; sums to ≤ 1.
struct PhaseShares {
    double forward = 0, backward = 0, optimizer = 0, data = 0, other = 0;
    bool known = false;
};

struct SearchProblem {
    const Contract* contract = nullptr;
    const LegalSet* legal = nullptr;
    double gate = 0.02;  // g, log units
    double sigma_pair = 0.01;
    double reference_gib = 0;  // peak of the reference
    double capacity_gib = 0;   // cap per device; 0: unknown, everything fits
    PhaseShares phases;
    std::uint64_t seed = 0;
    int screens = 16;
};

}  // namespace infrarsi
