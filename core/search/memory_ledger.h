#pragma once
// The memory ledger: peak memory per device of a candidate, m̂(a) = base + Σ δ_s, in GiB (paper §4.1, DESIGN §8). It
// learns from runs that completed (their peak), from runs that did not fit (a lower bound, right-censored) and from
// runs that limped at the limit (an interval). MAP by damped Newton, Laplace covariance. Source: notes on statistics
// §11.

#include <optional>
#include <vector>

#include "core/search/cholesky.h"

namespace infrarsi {

enum class MemoryKind {
    measured,  // the peak was `low`
    at_least,  // needs `low` or more: out of memory
    between    // needs between `low` and `high`: thrashed at the limit
};

struct MemoryEvidence {
    SparseRow row;  // the candidate's memory features, without the base
    MemoryKind kind = MemoryKind::measured;
    double low = 0, high = 0;  // GiB
};

struct MemoryPrior {
    std::vector<double> mean;   // GiB per unit of a feature
    std::vector<double> sigma;  // > 0
    double base = 0;            // peak of the reference, GiB
    double base_sigma = 1;      // > 0
    double sigma_obs = 1;       // > 0; 0.02 of the device's capacity
};

struct Gib {
    double mean = 0;
    double sd = 0;
};

class MemoryLedger {
public:
    [[nodiscard]] static MemoryLedger fit(MemoryPrior prior, std::vector<MemoryEvidence> evidence);

    // Peak of a candidate. The sd is that of the model and never narrower than what measured and interval runs taught:
    // a run that was out of memory moves an estimate but does not make it sure (the Laplace covariance alone would be
    // over-confident).
    [[nodiscard]] Gib need(const SparseRow& row) const;
    // What a setting (or a difference of two candidates) adds; a saver is negative.
    [[nodiscard]] Gib change(const SparseRow& row) const;
    // P(need + ε ≤ capacity). A capacity ≤ 0 is unknown, and everything fits.
    [[nodiscard]] double p_fits(const SparseRow& row, double capacity_gib) const;
    // The same for a need that is at hand.
    [[nodiscard]] double p_fits(const Gib& need, double capacity_gib) const;
    // Makes many questions cheap, at O(features³) now.
    void tabulate() { table_ = exact_.inverse(); }

    // sd of the Laplace approximation alone, for the calibration plot.
    [[nodiscard]] double laplace_sd(const SparseRow& row) const;
    [[nodiscard]] int newton_steps() const { return newton_steps_; }
    // Log posterior at the MAP, up to a constant.
    [[nodiscard]] double log_posterior() const { return log_posterior_; }

private:
    [[nodiscard]] SparseRow with_base(const SparseRow& row) const;

    MemoryPrior prior_;
    std::vector<double> theta_;  // the base last
    Cholesky laplace_;           // H at the MAP
    Cholesky exact_;             // H without the censored runs
    std::vector<double> table_;  // its inverse; empty until asked for
    int newton_steps_ = 0;
    double log_posterior_ = 0;
};

}  // namespace infrarsi
