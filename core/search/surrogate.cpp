#include "core/search/surrogate.h"

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "core/base/error.h"

namespace infrarsi {

double amdahl_cap(double share) {
    return share >= 1 ? std::numeric_limits<double>::infinity() : -std::log1p(-std::fmax(share, 0.0));
}

double capped_sum(const std::vector<std::pair<unsigned, double>>& levers, const PhaseShareTable& shares) {
    // Levers on the same phases are one pool of gains and one of losses.
    struct Pool {
        double gain = 0;
        double loss = 0;
    };
    std::map<unsigned, Pool> pools;
    for (const auto& [phases, gain] : levers) (gain > 0 ? pools[phases].gain : pools[phases].loss) += gain;
    if (!shares.empty()) {
        // Every set that is a union of levers' sets may bind, not only those that a lever names.
        const unsigned sets = 1U << shares.size();
        for (std::size_t count = 1; count <= shares.size(); ++count) {
            for (unsigned set = 1; set < sets; ++set) {
                if (std::popcount(set) != static_cast<int>(count)) continue;
                double share = 0;
                for (std::size_t bit = 0; bit < shares.size(); ++bit) share += (set >> bit & 1U) != 0 ? shares[bit] : 0;
                double gain = 0;
                double loss = 0;
                for (const auto& [phases, pool] : pools) {
                    if (phases == 0 || (phases & ~set) != 0) continue;
                    gain += pool.gain;
                    loss += pool.loss;
                }
                const double cap = amdahl_cap(share);
                if (gain <= 0 || gain + loss <= cap) continue;
                const double scale = (cap - loss) / gain;
                for (auto& [phases, pool] : pools) {
                    if (phases != 0 && (phases & ~set) == 0) pool.gain *= scale;
                }
            }
        }
    }
    double sum = 0;
    for (const auto& [phases, pool] : pools) sum += pool.gain + pool.loss;
    return sum;
}

// The random slope is an extra coefficient s ~ N(0, v0) with x_s = xᵀp: the same prior as adding v0·p pᵀ, but its
// precision matrix stays diagonal, so that features nobody touched cost nothing.
Surrogate::Surrogate(TimePrior prior, PhaseShareTable shares) : prior_(std::move(prior)), shares_(std::move(shares)) {
    INFRARSI_CHECK(prior_.mean.size() == prior_.sigma.size(), "every feature has a prior mean and width");
    std::vector<double> precisions;
    precisions.reserve(prior_.sigma.size() + 1);
    for (const double sigma : prior_.sigma) precisions.push_back(1.0 / (sigma * sigma));
    if (prior_.slope_variance > 0) precisions.push_back(1.0 / prior_.slope_variance);
    precision_ = Cholesky::of_diagonal(precisions);
    information_.assign(precisions.size(), 0.0);
    solve();
}

SparseRow Surrogate::with_slope(const SparseRow& row) const {
    if (prior_.slope_variance <= 0) return row;
    SparseRow result = row;
    const double along = dot(row, prior_.slope);
    if (along != 0) result.push_back({static_cast<int>(prior_.mean.size()), along});
    return result;
}

void Surrogate::solve() {
    shift_ = precision_.solve(information_);
    weights_ = prior_.mean;
    const double slope = prior_.slope_variance > 0 ? shift_.back() : 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        weights_[i] += shift_[i];
        if (slope != 0) weights_[i] += slope * prior_.slope[i];
    }
}

void Surrogate::observe(const SparseRow& row, double y, double sigma) {
    INFRARSI_CHECK(sigma > 0, "a measurement has noise");
    const double variance = sigma * sigma + std::pow(sd(row), 2);
    const double miss = y - linear_mean(row);
    log_evidence_ += -0.5 * (miss * miss / variance + std::log(2 * std::numbers::pi * variance));

    SparseRow scaled = with_slope(row);
    const double residual = y - dot(row, prior_.mean);
    for (Term& term : scaled) {
        information_[static_cast<std::size_t>(term.feature)] += term.value * residual / (sigma * sigma);
        term.value /= sigma;
    }
    precision_.add(scaled);
    solve();
}

void Surrogate::observe_all(const std::vector<SparseRow>& rows, const std::vector<double>& ys,
                            const std::vector<double>& sigmas) {
    std::vector<double> precisions;
    for (const double sigma : prior_.sigma) precisions.push_back(1.0 / (sigma * sigma));
    if (prior_.slope_variance > 0) precisions.push_back(1.0 / prior_.slope_variance);
    std::vector<SparseRow> full;
    std::vector<double> weights;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        INFRARSI_CHECK(sigmas[r] > 0, "a measurement has noise");
        full.push_back(with_slope(rows[r]));
        weights.push_back(1.0 / (sigmas[r] * sigmas[r]));
        const double residual = ys[r] - dot(rows[r], prior_.mean);
        for (const Term& term : full.back()) {
            information_[static_cast<std::size_t>(term.feature)] += term.value * residual * weights.back();
        }
    }
    precision_ = Cholesky::of_rows(precisions, full, weights);
    solve();
}

double Surrogate::linear_mean(const SparseRow& row) const {
    return dot(row, weights_);
}

double Surrogate::sd(const SparseRow& row) const {
    return std::sqrt(precision_.inverse_form(with_slope(row)));
}

Gain Surrogate::predict(const SparseRow& row) const {
    Gain gain{.mean = linear_mean(row), .sd = sd(row)};
    if (shares_.empty() || prior_.phases.empty()) return gain;
    std::vector<std::pair<unsigned, double>> levers;
    for (const Term& term : row) {
        const auto feature = static_cast<std::size_t>(term.feature);
        levers.emplace_back(prior_.phases[feature], term.value * weights_[feature]);
    }
    gain.mean = capped_sum(levers, shares_);
    return gain;
}

}  // namespace infrarsi
