#include "core/search/normal_tails.h"

#include <cmath>
#include <numbers>

namespace infrarsi {

namespace {

constexpr double kHalfLogTwoPi = 0.918938533204672741780329736406;
constexpr double kNarrowestInterval = 1e-8;

double density(double z) {
    return std::exp(-0.5 * z * z - kHalfLogTwoPi);
}

// Mills ratio Q(x)/φ(x) for x ≥ 5, by its continued fraction evaluated from the inside; 60 terms give full precision
// at x = 5 and many more than needed beyond.
double mills_ratio(double x) {
    double tail = x;
    for (int term = 60; term >= 1; --term) tail = x + term / tail;
    return 1.0 / tail;
}

// φ(z)/Z for Z = exp(log_z), without forming either when both underflow.
double density_over(double z, double log_z) {
    return std::isinf(z) ? 0.0 : std::exp(-0.5 * z * z - kHalfLogTwoPi - log_z);
}

}  // namespace

double normal_cdf(double z) {
    return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

double log_normal_cdf(double z) {
    if (z > 1) return std::log1p(-0.5 * std::erfc(z / std::numbers::sqrt2));
    if (z > -30) return std::log(0.5 * std::erfc(-z / std::numbers::sqrt2));
    return -0.5 * z * z - kHalfLogTwoPi + std::log(mills_ratio(-z));
}

double normal_hazard(double a) {
    if (a < -5) return 1.0 / mills_ratio(-a);
    return density(a) / normal_cdf(a);
}

double normal_curvature(double a) {
    // a + h(a) loses its digits far out, where the series has them all.
    if (a < -30) {
        const double inverse = 1.0 / (a * a);
        return 1.0 - inverse * (1.0 - inverse * (6.0 - inverse * (50.0 - 518.0 * inverse)));
    }
    const double h = normal_hazard(a);
    return h * (a + h);
}

IntervalTerm normal_interval(double alpha, double beta) {
    if (beta - alpha < kNarrowestInterval) {
        const double middle = 0.5 * (alpha + beta);
        return {.log_probability = -0.5 * middle * middle - kHalfLogTwoPi + std::log(beta - alpha),
                .slope = middle,
                .curvature = 1};
    }
    // Reflected so that the work is done in the tail where ln Φ has digits.
    const double low = alpha > 0 ? -beta : alpha;
    const double high = alpha > 0 ? -alpha : beta;
    const double log_high = log_normal_cdf(high);
    const double log_z = log_high + std::log1p(-std::exp(log_normal_cdf(low) - log_high));
    const double at_alpha = density_over(alpha, log_z);
    const double at_beta = density_over(beta, log_z);
    const double slope = at_alpha - at_beta;
    const double beta_term = std::isinf(beta) ? 0.0 : beta * at_beta;
    const double alpha_term = std::isinf(alpha) ? 0.0 : alpha * at_alpha;
    // Far out (|α| beyond about 1e4) the two terms cancel; the curvature lies in (0, 1) whatever the rounding says.
    const double curvature = std::fmin(std::fmax(beta_term - alpha_term + slope * slope, 1e-12), 1.0);
    return {.log_probability = log_z, .slope = slope, .curvature = curvature};
}

}  // namespace infrarsi
