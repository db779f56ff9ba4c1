#include "core/search/surrogate.h"

#include <Eigen/Dense>
#include <numbers>

#include "core/base/env.h"

using namespace infrarsi;

namespace {

struct Data {
    TimePrior prior;
    std::vector<SparseRow> rows;
    std::vector<double> ys, sigmas;
};

Data made_data(std::uint64_t seed, int features, int runs, double slope_variance) {
    Random random(seed);
    Data data;
    for (int i = 0; i < features; ++i) {
        data.prior.mean.push_back(0.1 * random.normal());
        data.prior.sigma.push_back(0.05 + 0.2 * random.uniform());
        data.prior.slope.push_back(data.prior.mean.back());
    }
    data.prior.slope_variance = slope_variance;
    for (int r = 0; r < runs; ++r) {
        SparseRow row;
        for (int i = 0; i < features; ++i) {
            if (random.uniform() < 0.3) row.push_back({i, random.uniform() < 0.5 ? 1.0 : random.normal()});
        }
        data.rows.push_back(row);
        data.ys.push_back(0.3 * random.normal());
        data.sigmas.push_back(0.01 + 0.03 * random.uniform());
    }
    return data;
}

Eigen::VectorXd dense(const SparseRow& row, std::size_t size) {
    Eigen::VectorXd result = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(size));
    for (const Term& term : row) result(term.feature) = term.value;
    return result;
}

// The same posterior from the other side: the joint normal of weights and measurements, conditioned directly.
struct Conditioned {
    Eigen::MatrixXd covariance;
    Eigen::VectorXd mean;
    double log_evidence = 0;
};

Conditioned condition(const Data& data) {
    const auto size = static_cast<Eigen::Index>(data.prior.mean.size());
    const auto runs = static_cast<Eigen::Index>(data.rows.size());
    Eigen::MatrixXd prior = Eigen::MatrixXd::Zero(size, size);
    Eigen::VectorXd mean(size);
    Eigen::VectorXd slope(size);
    for (Eigen::Index i = 0; i < size; ++i) {
        prior(i, i) = std::pow(data.prior.sigma[static_cast<std::size_t>(i)], 2);
        mean(i) = data.prior.mean[static_cast<std::size_t>(i)];
        slope(i) = data.prior.slope[static_cast<std::size_t>(i)];
    }
    prior += data.prior.slope_variance * slope * slope.transpose();
    Eigen::MatrixXd x(runs, size);
    Eigen::VectorXd y(runs);
    Eigen::MatrixXd noise = Eigen::MatrixXd::Zero(runs, runs);
    for (Eigen::Index r = 0; r < runs; ++r) {
        x.row(r) = dense(data.rows[static_cast<std::size_t>(r)], data.prior.mean.size()).transpose();
        y(r) = data.ys[static_cast<std::size_t>(r)];
        noise(r, r) = std::pow(data.sigmas[static_cast<std::size_t>(r)], 2);
    }
    const Eigen::MatrixXd joint = x * prior * x.transpose() + noise;
    const Eigen::FullPivLU<Eigen::MatrixXd> lu(joint);
    const Eigen::VectorXd residual = y - x * mean;
    const Eigen::MatrixXd gain = prior * x.transpose() * lu.inverse();
    return {.covariance = prior - gain * x * prior,
            .mean = mean + gain * residual,
            .log_evidence = -0.5 * (residual.dot(lu.inverse() * residual) + std::log(lu.determinant()) +
                                    static_cast<double>(runs) * std::log(2 * std::numbers::pi))};
}

}  // namespace

TEST_CASE("the surrogate's posterior is the conditioned joint normal", "[search]") {
    for (const double slope_variance : {0.0, 0.25, 4.0}) {
        const Data data = made_data(7, 9, 6, slope_variance);
        const Conditioned expected = condition(data);
        Surrogate stepwise(data.prior);
        for (std::size_t r = 0; r < data.rows.size(); ++r) {
            stepwise.observe(data.rows[r], data.ys[r], data.sigmas[r]);
        }
        Surrogate at_once(data.prior);
        at_once.observe_all(data.rows, data.ys, data.sigmas);
        for (const SparseRow& row : made_data(8, 9, 12, 0).rows) {
            INFO("v0 = " << slope_variance);
            const Eigen::VectorXd x = dense(row, 9);
            const double mean = x.dot(expected.mean);
            const double sd = std::sqrt(x.dot(expected.covariance * x));
            for (const Surrogate* surrogate : {&stepwise, &at_once}) {
                CHECK(surrogate->predict(row).mean == Approx(mean).epsilon(1e-8).margin(1e-11));
                CHECK(surrogate->predict(row).sd == Approx(sd).epsilon(1e-7).margin(1e-10));
            }
        }
        CHECK(stepwise.log_evidence() == Approx(expected.log_evidence).epsilon(1e-8));
    }
}

TEST_CASE("two correlated weights agree with numerical integration", "[search]") {
    TimePrior prior{.mean = {0.1, -0.05}, .sigma = {0.2, 0.1}, .slope = {}, .slope_variance = 0, .phases = {}};
    Surrogate surrogate(prior);
    surrogate.observe({{0, 1}, {1, 1}}, 0.3, 0.05);
    long double mass = 0;
    long double first = 0;
    long double square = 0;
    for (double a = -1; a <= 1.2; a += 0.004) {
        for (double b = -0.8; b <= 0.8; b += 0.004) {
            const long double density = std::exp(-0.5L * (std::pow((a - 0.1) / 0.2, 2) + std::pow((b + 0.05) / 0.1, 2) +
                                                          std::pow((a + b - 0.3) / 0.05, 2)));
            mass += density;
            first += density * a;
            square += density * a * a;
        }
    }
    const double mean = static_cast<double>(first / mass);
    CHECK(surrogate.predict({{0, 1}}).mean == Approx(mean).epsilon(1e-6));
    CHECK(surrogate.predict({{0, 1}}).sd == Approx(std::sqrt(static_cast<double>(square / mass) - mean * mean)));
}

TEST_CASE("a random slope lets data show that the whole prior is worthless", "[search]") {
    TimePrior prior{.mean = {0.2, 0.2, 0.2, 0.2},
                    .sigma = {0.1, 0.1, 0.1, 0.1},
                    .slope = {0.2, 0.2, 0.2, 0.2},
                    .slope_variance = 1,
                    .phases = {}};
    Surrogate doubting(prior);
    prior.slope_variance = 0;
    Surrogate trusting(prior);
    for (int feature = 0; feature < 3; ++feature) {
        doubting.observe({{feature, 1}}, 0.0, 0.01);
        trusting.observe({{feature, 1}}, 0.0, 0.01);
    }
    CHECK(trusting.predict({{3, 1}}).mean == Approx(0.2));
    CHECK(doubting.predict({{3, 1}}).mean < 0.05);
}

TEST_CASE("levers on one phase share its cap", "[search]") {
    const PhaseShareTable shares{0.3, 0.5, 0.1};
    CHECK(amdahl_cap(0.5) == Approx(std::numbers::ln2));
    CHECK(std::isinf(amdahl_cap(1)));
    CHECK(capped_sum({{1, 0.2}, {1, 0.3}}, shares) == Approx(-std::log(0.7)));
    CHECK(capped_sum({{1, 0.2}, {1, 0.1}}, shares) == Approx(0.3));
    // A loss in the phase makes room for gains in it; losses are never capped.
    CHECK(capped_sum({{1, 0.5}, {1, -0.1}}, shares) == Approx(-std::log(0.7)));
    CHECK(capped_sum({{1, -0.9}}, shares) == Approx(-0.9));
    // Together they may not remove more than both phases, though each alone is under its own cap.
    CHECK(capped_sum({{1, 0.34}, {2, 0.6}, {3, 0.9}}, shares) == Approx(-std::log(0.2)));
    CHECK(capped_sum({{1, 0.34}, {2, 0.68}, {4, 0.1}}, shares) == Approx(1.12));
    // An unknown lever is not capped, and unknown shares cap nothing.
    CHECK(capped_sum({{0, 2.0}, {4, 3.0}}, shares) == Approx(2.0 - std::log(0.9)));
    CHECK(capped_sum({{1, 5.0}}, {}) == Approx(5.0));

    TimePrior prior{.mean = {0.5, 0.5}, .sigma = {0.3, 0.3}, .slope = {}, .slope_variance = 0, .phases = {4, 4}};
    const Surrogate surrogate(prior, shares);
    CHECK(surrogate.predict({{0, 1}, {1, 1}}).mean == Approx(-std::log(0.9)));
    CHECK(surrogate.linear_mean({{0, 1}, {1, 1}}) == Approx(1.0));
}

TEST_CASE("a noisy run moves the estimate less than a quiet one", "[search]") {
    const TimePrior prior{.mean = {0}, .sigma = {0.1}, .slope = {}, .slope_variance = 0, .phases = {}};
    Surrogate noisy(prior);
    noisy.observe({{0, 1}}, 0.2, 0.1);
    Surrogate quiet(prior);
    quiet.observe({{0, 1}}, 0.2, 0.01);
    CHECK(noisy.predict({{0, 1}}).mean == Approx(0.1));
    CHECK(quiet.predict({{0, 1}}).mean > 0.19);
}

TEST_CASE("rows subtract term by term", "[search]") {
    CHECK(difference({{0, 1}, {2, 3}, {5, 1}}, {{1, 2}, {2, 3}, {5, 4}}) == SparseRow{{0, 1}, {1, -2}, {5, -3}});
    CHECK(difference({}, {}).empty());
}
