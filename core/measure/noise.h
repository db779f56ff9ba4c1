#pragma once
// The noise floor of a job on a machine (DESIGN §7.2, notes/statistics.md §1–§5). All in log units.

#include <string>
#include <vector>

#include "core/trial/receipt.h"

namespace infrarsi {

struct NoiseFloor {
    double sigma_pair = 0;  // the largest of the three below
    double degrees = 1;     // degrees of freedom ν of the term that won
    double from_pairs = 0, from_split = 0, from_white = 0;
    std::string winner;  // "pairs", "split-half", "white-noise"
    bool drifting = false;
    double sigma_loss = 0;  // sd of the per-update loss difference between repeats, absolute
    int runs = 0;
};

// From repeated reference runs in the order in which they ran (≥ 1; with one run only split halves and white noise
// count).
[[nodiscard]] NoiseFloor estimate_noise(const std::vector<Receipt>& references);

// P(T ≤ t) of Student's t with ν > 0 degrees, and its quantile (0 < p < 1).
[[nodiscard]] double student_cdf(double t, double degrees);
[[nodiscard]] double student_quantile(double p, double degrees);

// Search gate g = max(0.02, 2σ_pair).
[[nodiscard]] double search_gate(const NoiseFloor& noise);

// One back-to-back block: step times in seconds, ABBA order (reference, candidate, candidate, reference).
struct PairResult {
    double log_gain = 0;         // ½[(ln A1 + ln A2) − (ln B1 + ln B2)] of window means
    double log_gain_median = 0;  // the same of window medians
};

enum class Decision { promote, reject, undecided };

struct GainEstimate {
    int pairs = 0;
    double log_gain = 0, low = 0,
           high = 0;     // mean and one-sided 95 % bounds, t with ν of the pairs and the noise floor
    double speedup = 1;  // exp(log_gain)
    double margin = 0;   // 2σ_pair: what the gain must exceed
    Decision decision = Decision::undecided;
    std::string reason;  // one sentence
};

// Sequential decision after each pair: promote when the interval is clear of exp(2σ_pair) − 1 and mean and median
// agree; reject when its upper end is under it; else undecided (paper Table 8, speed_reproduces).
[[nodiscard]] GainEstimate judge_pairs(const std::vector<PairResult>& pairs, const NoiseFloor& noise);

}  // namespace infrarsi
