#pragma once
// The predicates of paper Table 8, one function an item; verdict.cpp puts them together. All are pure.

#include <fmt/format.h>

#include "core/verify/verdict.h"

namespace infrarsi {

struct Comparison {
    const Receipt& candidate;
    const ReferenceEvidence& evidence;
    const InvariantRules& rules;
    bool same_data_proven = false;  // same_data passed

    [[nodiscard]] const Receipt& reference() const { return evidence.reference; }
};

// L1 execution.
[[nodiscard]] InvariantResult completes(const Comparison& c);
[[nodiscard]] InvariantResult no_errors(const Comparison& c);
[[nodiscard]] InvariantResult memory_cap(const Comparison& c);
// L2 workload.
[[nodiscard]] InvariantResult same_workload(const Comparison& c);
[[nodiscard]] InvariantResult same_data(const Comparison& c);
[[nodiscard]] InvariantResult same_model(const Comparison& c);
[[nodiscard]] InvariantResult frozen_files(const Comparison& c);
// L3 schedule.
[[nodiscard]] InvariantResult optimizer_steps(const Comparison& c);
// L4 numerical.
[[nodiscard]] InvariantResult loss_within_tolerance(const Comparison& c);
[[nodiscard]] InvariantResult grad_norm_within_tol(const Comparison& c);
[[nodiscard]] InvariantResult eval_matches(const Comparison& c);
[[nodiscard]] InvariantResult precision(const Comparison& c);
// L5 timing and re-run.
[[nodiscard]] InvariantResult timing_consistent(const Comparison& c);
[[nodiscard]] InvariantResult resume_continues(const Comparison& c);
[[nodiscard]] InvariantResult user_tests(const Comparison& c);

// The tolerance of the loss rule: relative, and why it is what it is.
struct LossTolerance {
    double relative = 0;
    bool widened = false;
    bool per_update = false;  // hold the largest deviation of one update instead of the window's mean
    std::string why;
};
[[nodiscard]] LossTolerance loss_tolerance(const Comparison& c);

// A run that ended as it should: exit code 0, or stopped by the harness after its last update.
[[nodiscard]] bool ended_cleanly(const Receipt& receipt);
// Updates 1, 2, … that were seen without a gap.
[[nodiscard]] int updates_done(const Receipt& receipt);
// Relative deviation |a − b| / |b|; infinite when b is 0 and a is not, or either is not finite.
[[nodiscard]] double relative_deviation(double a, double b);
[[nodiscard]] const UpdateRecord* update_at(const Receipt& receipt, int n);

[[nodiscard]] inline InvariantResult result_of(InvariantId id, Status status, std::string evidence,
                                               std::string remedy = {}) {
    return {id, status, std::move(evidence), std::move(remedy)};
}

}  // namespace infrarsi
