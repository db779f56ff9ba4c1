#include "core/search/memory_ledger.h"

#include <cmath>

#include "core/base/error.h"
#include "core/search/normal_tails.h"

namespace infrarsi {

namespace {

constexpr int kMostNewtonSteps = 50;
constexpr double kConverged = 1e-10;  // gᵀH⁻¹g
constexpr double kArmijo = 1e-4;

// One run's log-likelihood and its derivatives in m̂, in units of σ_obs.
struct Likelihood {
    double value = 0, slope = 0, curvature = 0;
};

Likelihood likelihood(const MemoryEvidence& evidence, double need, double sigma) {
    switch (evidence.kind) {
        case MemoryKind::measured: {
            const double miss = (evidence.low - need) / sigma;
            return {-0.5 * miss * miss, miss, 1};
        }
        case MemoryKind::at_least: {
            const double a = (need - evidence.low) / sigma;
            return {log_normal_cdf(a), normal_hazard(a), normal_curvature(a)};
        }
        case MemoryKind::between: {
            const IntervalTerm term = normal_interval((evidence.low - need) / sigma, (evidence.high - need) / sigma);
            return {term.log_probability, term.slope, term.curvature};
        }
    }
    return {};
}

// The log posterior with everything Newton needs at one θ.
struct Fit {
    const MemoryPrior& prior;
    const std::vector<MemoryEvidence>& evidence;
    std::vector<SparseRow> rows;  // with the base
    std::vector<double> prior_mean, prior_precision;

    [[nodiscard]] double log_posterior(const std::vector<double>& theta) const {
        double sum = 0;
        for (std::size_t i = 0; i < theta.size(); ++i) {
            sum -= 0.5 * prior_precision[i] * std::pow(theta[i] - prior_mean[i], 2);
        }
        for (std::size_t r = 0; r < rows.size(); ++r) {
            sum += likelihood(evidence[r], dot(rows[r], theta), prior.sigma_obs).value;
        }
        return sum;
    }

    [[nodiscard]] std::vector<double> gradient(const std::vector<double>& theta) const {
        std::vector<double> result(theta.size());
        for (std::size_t i = 0; i < theta.size(); ++i) result[i] = -prior_precision[i] * (theta[i] - prior_mean[i]);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const double slope = likelihood(evidence[r], dot(rows[r], theta), prior.sigma_obs).slope / prior.sigma_obs;
            for (const Term& term : rows[r]) result[static_cast<std::size_t>(term.feature)] += slope * term.value;
        }
        return result;
    }

    [[nodiscard]] std::vector<double> curvatures(const std::vector<double>& theta) const {
        std::vector<double> result;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            result.push_back(likelihood(evidence[r], dot(rows[r], theta), prior.sigma_obs).curvature /
                             (prior.sigma_obs * prior.sigma_obs));
        }
        return result;
    }
};

double inner(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace

MemoryLedger MemoryLedger::fit(MemoryPrior prior, std::vector<MemoryEvidence> evidence) {
    INFRARSI_CHECK(prior.sigma_obs > 0 && prior.base_sigma > 0, "the ledger's widths are positive");
    INFRARSI_CHECK(prior.mean.size() == prior.sigma.size(), "every feature has a prior mean and width");
    MemoryLedger ledger;
    ledger.prior_ = std::move(prior);
    Fit fit{ledger.prior_, evidence, {}, ledger.prior_.mean, {}};
    fit.prior_mean.push_back(ledger.prior_.base);
    for (const double sigma : ledger.prior_.sigma) fit.prior_precision.push_back(1.0 / (sigma * sigma));
    fit.prior_precision.push_back(1.0 / (ledger.prior_.base_sigma * ledger.prior_.base_sigma));
    for (const MemoryEvidence& run : evidence) fit.rows.push_back(ledger.with_base(run.row));

    // Strictly concave thanks to the prior: Newton needs damping only against overshooting.
    std::vector<double> theta = fit.prior_mean;
    double best = fit.log_posterior(theta);
    ledger.laplace_ = Cholesky::of_rows(fit.prior_precision, fit.rows, fit.curvatures(theta));
    while (ledger.newton_steps_ < kMostNewtonSteps) {
        const std::vector<double> gradient = fit.gradient(theta);
        const std::vector<double> step = ledger.laplace_.solve(gradient);
        const double decrement = inner(gradient, step);
        if (decrement < kConverged) break;
        double length = 1;
        std::vector<double> trial(theta.size());
        double value = 0;
        do {
            for (std::size_t i = 0; i < theta.size(); ++i) trial[i] = theta[i] + length * step[i];
            value = fit.log_posterior(trial);
            length /= 2;
        } while (!(value >= best + kArmijo * 2 * length * decrement) && length > 1e-12);
        if (!(value > best)) break;  // no digits left to gain
        theta = trial;
        best = value;
        ++ledger.newton_steps_;
        ledger.laplace_ = Cholesky::of_rows(fit.prior_precision, fit.rows, fit.curvatures(theta));
    }

    std::vector<double> exact = fit.curvatures(theta);
    for (std::size_t r = 0; r < evidence.size(); ++r) {
        if (evidence[r].kind == MemoryKind::at_least) exact[r] = 0;
    }
    ledger.exact_ = Cholesky::of_rows(fit.prior_precision, fit.rows, exact);
    ledger.theta_ = std::move(theta);
    ledger.log_posterior_ = best;
    return ledger;
}

SparseRow MemoryLedger::with_base(const SparseRow& row) const {
    SparseRow result = row;
    result.push_back({static_cast<int>(prior_.mean.size()), 1.0});
    return result;
}

Gib MemoryLedger::need(const SparseRow& row) const {
    return change(with_base(row));
}

Gib MemoryLedger::change(const SparseRow& row) const {
    return {.mean = dot(row, theta_),
            .sd = std::sqrt(table_.empty() ? exact_.inverse_form(row) : quadratic_form(table_, row))};
}

double MemoryLedger::p_fits(const SparseRow& row, double capacity_gib) const {
    return p_fits(need(row), capacity_gib);
}

double MemoryLedger::p_fits(const Gib& need, double capacity_gib) const {
    if (capacity_gib <= 0) return 1;
    return normal_cdf((capacity_gib - need.mean) / std::hypot(need.sd, prior_.sigma_obs));
}

double MemoryLedger::laplace_sd(const SparseRow& row) const {
    return std::sqrt(laplace_.inverse_form(with_base(row)));
}

}  // namespace infrarsi
