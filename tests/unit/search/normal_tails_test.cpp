#include "core/search/normal_tails.h"

using namespace infrarsi;

namespace {

long double density(long double x) {
    return std::exp(-0.5L * x * x) / std::sqrt(2.0L * 3.14159265358979323846264338L);
}

// Composite Simpson in long double: slow, simple, independent of erfc.
long double integral(long double from, long double to, int halves = 20000) {
    const long double step = (to - from) / (2 * halves);
    long double sum = density(from) + density(to);
    for (int i = 1; i < 2 * halves; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(from + i * step);
    return sum * step / 3;
}

// ∫_{−∞}^{z} φ, far enough to the left that the rest is below the last digit.
long double cdf_by_integration(long double z) {
    return integral(z < -5 ? z - 6 : z - 20, z);
}

}  // namespace

TEST_CASE("ln Phi matches published values", "[search]") {
    CHECK(log_normal_cdf(-5) == Approx(-15.064998393988724).epsilon(1e-14));
    CHECK(log_normal_cdf(-10) == Approx(-53.231285150512).epsilon(1e-13));
    CHECK(log_normal_cdf(-40) == Approx(-804.608442013754).epsilon(1e-14));
    CHECK(log_normal_cdf(0) == Approx(-0.6931471805599453).epsilon(1e-15));
    CHECK(log_normal_cdf(40) == 0);
    CHECK(log_normal_cdf(1e9) == 0);
    CHECK(std::isfinite(log_normal_cdf(-1e9)));
}

TEST_CASE("the hazard and the curvature match published values", "[search]") {
    CHECK(normal_hazard(-50) == Approx(50.01998403190563).epsilon(1e-14));
    CHECK(normal_hazard(-10) == Approx(10.09809323396251).epsilon(1e-13));
    CHECK(normal_hazard(0) == Approx(0.797884560802865).epsilon(1e-14));
    CHECK(normal_hazard(5) == Approx(1.48671994e-06).epsilon(1e-8));
    CHECK(normal_curvature(-50) == Approx(0.99960095681).epsilon(1e-10));
    CHECK(normal_curvature(-2) == Approx(0.88572089959).epsilon(1e-10));
    CHECK(normal_curvature(0) == Approx(0.6366197723675814).epsilon(1e-13));
}

TEST_CASE("ln Phi, its slope and its curvature agree with numerical integration", "[search]") {
    for (const double z : {-38.0, -31.0, -30.0, -29.9, -12.5, -12.0, -6.0, -5.0, -4.9, -1.0, 0.0, 0.9, 1.1, 3.0, 8.0}) {
        INFO("z = " << z);
        const long double phi = cdf_by_integration(z);
        const long double h = density(z) / phi;
        CHECK(log_normal_cdf(z) == Approx(static_cast<double>(std::log(phi))).epsilon(1e-11).margin(1e-16));
        CHECK(normal_hazard(z) == Approx(static_cast<double>(h)).epsilon(1e-10));
        // Long double cancels too, so the comparison is looser where h is near −z.
        CHECK(normal_curvature(z) == Approx(static_cast<double>(h * (z + h))).epsilon(3e-7));
    }
}

TEST_CASE("the pieces of ln Phi join without a step", "[search]") {
    for (const double joint : {-30.0, -12.0, -5.0, 1.0}) {
        INFO("joint " << joint);
        const double below = joint - 1e-9;
        const double above = joint + 1e-9;
        CHECK(log_normal_cdf(below) == Approx(log_normal_cdf(above)).epsilon(1e-8));
        CHECK(normal_hazard(below) == Approx(normal_hazard(above)).epsilon(1e-8));
        CHECK(normal_curvature(below) == Approx(normal_curvature(above)).epsilon(1e-7));
    }
    for (double a = -2000; a < 8; a += 0.37) {
        INFO("a = " << a);
        CHECK(normal_curvature(a) > 0);
        CHECK(normal_curvature(a) < 1);
    }
}

TEST_CASE("an interval's probability and derivatives agree with numerical integration", "[search]") {
    const std::vector<std::pair<double, double>> intervals{{-1, 1},  {-0.1, 3},  {2, 2.5},   {-2.5, -2}, {8, 9},
                                                           {-9, -8}, {20, 20.5}, {-36, -35}, {0, 0.001}, {-30, 30}};
    for (const auto& [alpha, beta] : intervals) {
        INFO("[" << alpha << ", " << beta << "]");
        const long double z = integral(alpha, beta);
        const long double slope = -(density(beta) - density(alpha)) / z;
        const long double curvature = (beta * density(beta) - alpha * density(alpha)) / z + slope * slope;
        const IntervalTerm term = normal_interval(alpha, beta);
        CHECK(term.log_probability == Approx(static_cast<double>(std::log(z))).epsilon(1e-9).margin(1e-12));
        CHECK(term.slope == Approx(static_cast<double>(slope)).epsilon(1e-9).margin(1e-9));
        CHECK(term.curvature == Approx(static_cast<double>(curvature)).epsilon(1e-5).margin(1e-7));
    }
    const IntervalTerm open = normal_interval(-2, std::numeric_limits<double>::infinity());
    CHECK(open.log_probability == Approx(log_normal_cdf(2)));
    CHECK(open.slope == Approx(normal_hazard(2)));
    CHECK(open.curvature == Approx(normal_curvature(2)));
    CHECK(normal_interval(3, 3 + 1e-12).slope == Approx(3));
    CHECK(std::isfinite(normal_interval(500, 501).log_probability));
}
