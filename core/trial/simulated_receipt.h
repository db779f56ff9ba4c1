#pragma once
// What a simulated trial leaves behind, as the receipt that a real one would have: so that the real verifier judges
// simulated runs, hacks included, from evidence alone. Source: SIMULATOR.md §4, §9.
//
// Only what the answer shows goes in, never its `status` and nothing that is true of the candidate. What an answer does
// not show stays empty, and the verifier's own rules for jobs that do not show it apply:
//
//   - State checksums: none, neither here nor in the reference, so optimizer_steps rests on the step counter and the
//     learning rate. A real job is held to its probes as before, since its reference has them.
//   - Evaluation, resumption, user tests: the contract configures none, so they are not required.
//   - Frozen files: one look is all there is. It stands for before and after, and differs from the reference's where a
//     patch has been at work.
//   - A run that ended before it left evidence (crash, hang, out of memory): completes and no_errors reject it first,
//   and
//     what needs evidence (memory_cap, same_model, frozen_files) may reject it too.
//   - A run of a single update: no step time that two clocks could agree on, so it stays unchecked and is no valid run
//   in
//     strict mode, as a real one would be. The shortest run that can be valid has two.
//
// Pure and thread-safe; tens of microseconds a run.

#include "core/contract/contract.h"
#include "core/simulate/answer.h"
#include "core/trial/receipt.h"

namespace infrarsi {

// `candidate` is what was asked for; the receipt names it and takes nothing else from it. `answer` is one with
// Detail::full. Step n arrives at the start-up time plus the first n step times. Role: "candidate".
[[nodiscard]] Receipt simulated_receipt(const sim::Workload& workload, const sim::Candidate& candidate,
                                        const sim::Answer& answer);

// The candidate in the words of a real campaign. A simulated patch has a name and no diff; its name stands in for one,
// so that two patches have two digests.
[[nodiscard]] Candidate simulated_candidate(const sim::Workload& workload, const sim::Candidate& candidate);

// The contract of the simulated job: its legal settings as flags, memory cap = capacity, tolerance 0.03, strict.
// Accumulation follows the micro-batch, so no constraint is needed to conserve the batch.
[[nodiscard]] Contract simulated_contract(const sim::Workload& workload);

// The receipt of a run that the harness had stopped after update n: what the evidence of a full run is worth beside a
// shorter one. Results of the whole run (eval, resume, tests) are left out; peak memory is the whole run's. n ≥ 1; a
// receipt of n updates or fewer comes back as it is.
[[nodiscard]] Receipt first_updates(const Receipt& receipt, int n);

}  // namespace infrarsi
