#include "core/search/memory_ledger.h"

#include "core/base/env.h"
#include "core/search/normal_tails.h"

using namespace infrarsi;

namespace {

MemoryPrior one_setting(double mean, double sigma) {
    return {.mean = {mean}, .sigma = {sigma}, .base = 60, .base_sigma = 0.001, .sigma_obs = 1.6};
}

// Moments of θ for base 60 exactly, one feature, by a fine grid over the exact posterior.
struct Moments {
    double mode = 0, mean = 0, curvature = 0;
};

template <class LogLikelihood>
Moments by_integration(double prior_mean, double prior_sigma, LogLikelihood log_likelihood) {
    const auto log_density = [&](double theta) {
        return -0.5 * std::pow((theta - prior_mean) / prior_sigma, 2) + log_likelihood(60 + theta);
    };
    Moments moments;
    long double mass = 0;
    long double first = 0;
    double best = -1e300;
    const double step = 0.0005;
    for (double theta = -60; theta < 60; theta += step) {
        const double value = log_density(theta);
        if (value > best) {
            best = value;
            moments.mode = theta;
        }
        mass += std::exp(static_cast<long double>(value));
        first += theta * std::exp(static_cast<long double>(value));
    }
    moments.mean = static_cast<double>(first / mass);
    const double h = 0.01;
    moments.curvature =
        -(log_density(moments.mode + h) - 2 * log_density(moments.mode) + log_density(moments.mode - h)) / (h * h);
    return moments;
}

const SparseRow kSetting{{0, 1.0}};

}  // namespace

TEST_CASE("a measured peak is the conjugate answer, in one step", "[search]") {
    const auto ledger = MemoryLedger::fit(one_setting(0, 8), {{kSetting, MemoryKind::measured, 70, 0}});
    const double precision = 1 / 64.0 + 1 / (1.6 * 1.6);
    CHECK(ledger.change(kSetting).mean == Approx(10 / (1.6 * 1.6) / precision).epsilon(1e-5));
    CHECK(ledger.change(kSetting).sd == Approx(1 / std::sqrt(precision)).epsilon(1e-5));
    CHECK(ledger.newton_steps() == 1);
}

TEST_CASE("out-of-memory and interval runs agree with numerical integration", "[search]") {
    SECTION("out of memory") {
        const auto ledger = MemoryLedger::fit(one_setting(5, 6), {{kSetting, MemoryKind::at_least, 84, 0}});
        const Moments truth = by_integration(5, 6, [](double m) { return log_normal_cdf((m - 84) / 1.6); });
        CHECK(ledger.change(kSetting).mean == Approx(truth.mode).margin(0.002));
        CHECK(std::pow(ledger.laplace_sd(kSetting), -2) == Approx(truth.curvature).epsilon(1e-3));
        CHECK(ledger.change(kSetting).mean == Approx(truth.mean).margin(2));  // Laplace: the mode, not the mean
    }
    SECTION("thrashing at the limit") {
        const auto ledger = MemoryLedger::fit(one_setting(0, 10), {{kSetting, MemoryKind::between, 72, 80}});
        const auto likelihood = [](double m) {
            return normal_interval((72 - m) / 1.6, (80 - m) / 1.6).log_probability;
        };
        const Moments truth = by_integration(0, 10, likelihood);
        CHECK(ledger.change(kSetting).mean == Approx(truth.mode).margin(0.002));
        CHECK(std::pow(ledger.laplace_sd(kSetting), -2) == Approx(truth.curvature).epsilon(1e-3));
        CHECK(ledger.change(kSetting).mean == Approx(truth.mean).margin(2.5));
    }
    SECTION("all kinds at once") {
        const auto ledger = MemoryLedger::fit(one_setting(2, 12), {{kSetting, MemoryKind::at_least, 80, 0},
                                                                   {kSetting, MemoryKind::between, 79, 86},
                                                                   {kSetting, MemoryKind::measured, 82.5, 0}});
        const Moments truth = by_integration(2, 12, [](double m) {
            return log_normal_cdf((m - 80) / 1.6) + normal_interval((79 - m) / 1.6, (86 - m) / 1.6).log_probability -
                   0.5 * std::pow((m - 82.5) / 1.6, 2);
        });
        CHECK(ledger.change(kSetting).mean == Approx(truth.mode).margin(0.002));
        CHECK(ledger.change(kSetting).mean == Approx(truth.mean).margin(0.1));
    }
}

TEST_CASE("a prior that is wrong by forty sigma still converges", "[search]") {
    MemoryPrior prior = one_setting(-60, 4);
    const auto ledger = MemoryLedger::fit(prior, {{kSetting, MemoryKind::at_least, 90, 0}});
    CHECK(std::isfinite(ledger.log_posterior()));
    CHECK(ledger.newton_steps() <= 12);
    CHECK(ledger.need(kSetting).mean > 60);
}

TEST_CASE("out-of-memory runs move an estimate but do not make it sure", "[search]") {
    std::vector<MemoryEvidence> runs(6, {kSetting, MemoryKind::at_least, 80, 0});
    const auto ledger = MemoryLedger::fit(one_setting(10, 10), runs);
    CHECK(ledger.need(kSetting).mean > 80);
    CHECK(ledger.change(kSetting).sd == Approx(10).epsilon(1e-6));
    CHECK(ledger.laplace_sd(kSetting) < 5);
    runs.push_back({kSetting, MemoryKind::measured, 83, 0});
    CHECK(MemoryLedger::fit(one_setting(10, 10), runs).change(kSetting).sd < 1.7);
}

TEST_CASE("the chance of fitting follows need, spread and capacity", "[search]") {
    const auto ledger = MemoryLedger::fit(one_setting(0, 8), {{kSetting, MemoryKind::measured, 70, 0}});
    CHECK(ledger.p_fits(kSetting, 0) == 1);  // capacity unknown
    CHECK(ledger.p_fits(kSetting, 80) > 0.99);
    CHECK(ledger.p_fits(kSetting, 60) < 0.01);
    CHECK(ledger.p_fits(kSetting, ledger.need(kSetting).mean) == Approx(0.5));
}

TEST_CASE("spenders and savers are told apart from runs of bundles", "[search]") {
    Random random(3);
    MemoryPrior prior{.mean = {0, 0, 0, 0}, .sigma = {10, 10, 10, 10}, .base = 60, .base_sigma = 1, .sigma_obs = 1.6};
    const std::vector<double> truth{14, -9, 0, 6};
    std::vector<MemoryEvidence> runs;
    for (int r = 0; r < 14; ++r) {
        MemoryEvidence run;
        double need = 60;
        for (int i = 0; i < 4; ++i) {
            if (random.uniform() < 0.5) continue;
            run.row.push_back({i, 1.0});
            need += truth[static_cast<std::size_t>(i)];
        }
        run.kind = need > 72 ? MemoryKind::at_least : MemoryKind::measured;
        run.low = need > 72 ? 72 : need + 0.5 * random.normal();
        runs.push_back(run);
    }
    const auto ledger = MemoryLedger::fit(prior, runs);
    CHECK(ledger.newton_steps() <= 12);
    for (int i = 0; i < 4; ++i) {
        INFO("setting " << i);
        const Gib gib = ledger.change({{i, 1.0}});
        CHECK(std::abs(gib.mean - truth[static_cast<std::size_t>(i)]) < 3 * gib.sd);
    }
    CHECK(ledger.change({{1, 1.0}}).mean < -5);
    CHECK(ledger.change({{3, 1.0}}).mean > 3);
}
