#pragma once
// Did the same updates happen? Compares the state probes of a candidate with the reference's (DESIGN §7.1).
//
// A probe holds one random projection P(n) per tensor. Where the reference has probes at n−1 and n, δ = P_ref(n) −
// P_ref(n−1) gives the size of one update of that tensor, and d = P_cand(n) − P_ref(n) the deviation, so |d|/|δ| is the
// deviation in updates. Both are ±-sums, so single ratios scatter like a ratio of two normal variables, and tensors
// whose gradient is zero but for rounding (the bias of attention keys under Adam) deviate by hundreds of updates in
// honest runs. Hence quantiles over all tensors, never a maximum:
//
//   drift   upper quartile of |d|/|δ|, at most kMaxDrift (low precision: kMaxDriftLow; never under three times what the
//           reference's own repeats show). 2.4 times the typical relative deviation of a whole tensor.
//   lag     β = Σ w·(−d/δ) / Σ w with w = δ²/(d² + δ²): 1 when the candidate's state is the reference's of one update
//           ago (d = −δ), near 0 for any noise, whatever its size; at most kMaxLag.
//   late    tensors that hold the reference's state of the update before, in every probed pair: an update deferred for
//           a part of the model (paper §3.3, cheat T01).
//   stale   tensors that the candidate left exactly as they were while the reference changed them.
//
// Calibration with real runs of examples/tinygpt (30 AdamW updates, fp32 and bf16): see the table in state_check.cpp.

#include <string>
#include <vector>

#include "core/trial/receipt.h"

namespace infrarsi {

inline constexpr double kMaxDrift = 0.5;
inline constexpr double kMaxDriftLow = 2.0;
inline constexpr double kMaxLag = 0.5;

struct StateCheck {
    int pairs = 0;         // probe pairs that were compared; 0: nothing to compare
    bool agrees = false;   // meaningful when pairs > 0, or when `evidence` names something missing
    bool missing = false;  // the candidate lacks probes or tensors that the reference has
    double drift = 0;      // largest over pairs
    double lag = 0;        // largest over pairs
    std::string evidence;
};

[[nodiscard]] StateCheck check_state(const Receipt& candidate, const Receipt& reference,
                                     const std::vector<Receipt>& repeats);

}  // namespace infrarsi
