#pragma once
// Did the same updates happen? Compares the state probes of a candidate with the reference's (DESIGN §7.1).
//
// A probe holds one random projection P(n) per tensor. Where the reference has probes at n−1 and n, δ = P_ref(n) −
// P_ref(n−1) gives the size of one update of that tensor, and d = P_cand(n) − P_ref(n) the deviation, so |d|/|δ| is the
// deviation in updates. Both are ±-sums, so single ratios scatter like a ratio of two normal variables, and tensors
// whose gradient is zero but for rounding (the bias of attention keys under Adam) deviate by hundreds of updates in
// honest runs. Hence quantiles over all tensors, never a maximum:
//
//   drift   upper quartile of |d|/|δ|, at most kMaxDrift. Parameters of jobs that compute in low precision drift apart
//           with every update: there at most kMaxDriftLowPerUpdate · n. Never under three times what the reference's
//           own repeats show.
//   lag     β = Σ w·(−d/δ) / Σ w with w = δ²/(d² + δ²): 1 when the candidate's state is the reference's of one update
//           ago (d = −δ), near 0 for any noise, whatever its size; at most kMaxLag.
//   late    tensors that hold the reference's state of the update before, in every probed pair: an update deferred for
//           a part of the model (paper §3.3, cheat T01).
//   stale   tensors that the candidate left exactly as they were while the reference changed them.
//
// Calibration: real runs of examples/tinygpt (30 AdamW updates, 101 tensors), probed at 4, 5, 29, 30. Drift and lag of
// the parameters, drift of the optimizer state, and the largest loss deviation of an update, which shows how little the
// loss rule sees:
//
//   against fp32                 drift n=5   n=30    lag n=30   optimizer n=5  n=30   loss
//   the same again               0           0       0          0          0          0
//   micro-batch 2 → 4            <0.001      <0.001  -0.002     <0.001     <0.001     6e-8
//   torch.compile                <0.001      <0.001  -0.000     <0.001     <0.001     4e-8
//   checkpointing off            0           0       0          0          0          0
//   2 threads (update 5 only)    <0.001      -       -          <0.001     -          1e-8
//   update 20 left out           0           10      0.83       0          0.72       0.7 %
//   update 3 left out            1.6         149     -0.13      3.3        6.0        2.2 %
//   every other update left out  1.5         337     1.29       6.3        12         14 %
//   gradients one update late    3.1         452     4.1        7.5        25         6 %
//   one block of six frozen      3.2         285     1.03       6.3        9.4        0.4 %  (16 stale tensors)
//   learning rate +1 %           0.05        8.7     -0.27      0.08       0.49       0.2 %
//   bf16 autocast                0.12        8.0     0.20       0.07       0.24       0.7 %
//   against bf16 autocast
//   micro-batch 2 → 4            0.017       1.7     -0.05      0.02       0.07       0.7 %
//   update 20 left out           0           10      0.79       0          0.72       0.8 %

#include <string>
#include <vector>

#include "core/trial/receipt.h"

namespace infrarsi {

inline constexpr double kMaxDrift = 0.5;
inline constexpr double kMaxDriftLowPerUpdate = 0.2;
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
