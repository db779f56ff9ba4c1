#pragma once
// The normal distribution where it is hard: far tails, by which a run that was out of memory informs the ledger. All
// functions are pure, finite for every finite argument, and good to about 1e-12 relative. Source: notes on statistics
// §11 (inverse Mills ratio, Tobit curvature, interval likelihood).

namespace infrarsi {

// Φ(z).
[[nodiscard]] double normal_cdf(double z);

// ln Φ(z); −804.608 at z = −40, where Φ itself is 0 in double.
[[nodiscard]] double log_normal_cdf(double z);

// h(a) = φ(a)/Φ(a), the derivative of ln Φ.
[[nodiscard]] double normal_hazard(double a);

// w(a) = h(a)(a + h(a)) = −(ln Φ)″, in (0, 1).
[[nodiscard]] double normal_curvature(double a);

// The likelihood of an interval and its derivatives for a mean that moves both ends: α = (L−m)/σ, β = (U−m)/σ.
struct IntervalTerm {
    double log_probability = 0;  // ln[Φ(β) − Φ(α)]
    double slope = 0;            // d/dm · σ = −(φ(β) − φ(α))/Z
    double curvature = 0;        // −d²/dm² · σ², in (0, 1)
};

// Requires α < β. An interval narrower than 1e-8 has no digits left and is treated as a measurement at its middle (the
// probability is then that of the density times the width).
[[nodiscard]] IntervalTerm normal_interval(double alpha, double beta);

}  // namespace infrarsi
