#pragma once
// The time surrogate: a Bayesian linear model of the log speed-up, y = Σ_f w_f φ_f(a) + ε, all in natural logs (paper
// §4.1, DESIGN §8). Prior w ~ N(μ0, diag(σ0²) + v0·p pᵀ): the random slope v0 on the predictions p lets the data say
// that the predictions are worthless as a whole. Posterior in precision form, kept as a Cholesky factor.

#include <vector>

#include "core/search/cholesky.h"

namespace infrarsi {

struct TimePrior {
    std::vector<double> mean;   // μ0 per feature, log units
    std::vector<double> sigma;  // σ0 per feature, > 0
    std::vector<double> slope;  // p per feature; empty: no random slope
    double slope_variance = 0;  // v0
    // Phases that a feature's lever works on, a set of bits (priors.h); 0: unknown, never capped. Empty: no caps.
    std::vector<unsigned> phases;
};

// Share of the reference's step time by phase bit; see `amdahl_cap`.
using PhaseShareTable = std::vector<double>;

struct Gain {
    double mean = 0;  // log units, after the caps
    double sd = 0;    // of the model, without the noise of a measurement
};

class Surrogate {
public:
    explicit Surrogate(TimePrior prior, PhaseShareTable shares = {});

    // One measured candidate: y ± sigma, log units; sigma > 0 of that run. O(features²).
    void observe(const SparseRow& row, double y, double sigma);
    // The same as observing one by one, factored once. Only right after construction.
    void observe_all(const std::vector<SparseRow>& rows, const std::vector<double>& ys,
                     const std::vector<double>& sigmas);

    [[nodiscard]] Gain predict(const SparseRow& row) const;
    // Posterior mean without caps, and sd, of xᵀw for any row, also a difference of two candidates.
    [[nodiscard]] double linear_mean(const SparseRow& row) const;
    [[nodiscard]] double sd(const SparseRow& row) const;
    // Σ ln N(y_n; prediction before n, σ_n² + variance before n) over what was observed one by one: for comparing
    // hyper-parameters. Not kept by observe_all.
    [[nodiscard]] double log_evidence() const { return log_evidence_; }

private:
    [[nodiscard]] SparseRow with_slope(const SparseRow& row) const;
    void solve();

    TimePrior prior_;
    PhaseShareTable shares_;
    Cholesky precision_;
    std::vector<double> information_;  // Σ x (y − xᵀμ0)/σ²
    std::vector<double> shift_;        // posterior mean − μ0, the slope's own coefficient last
    std::vector<double> weights_;      // posterior mean per feature
    double log_evidence_ = 0;
};

// −ln(1 − f): what removing a share f of the step entirely would give; infinite for f ≥ 1.
[[nodiscard]] double amdahl_cap(double share);

// The sum of the levers' gains, where the levers inside any set of phases together get no more than that set's cap.
// `levers` are (phase bits, gain); losses are never capped. Small sets are settled first.
[[nodiscard]] double capped_sum(const std::vector<std::pair<unsigned, double>>& levers, const PhaseShareTable& shares);

}  // namespace infrarsi
