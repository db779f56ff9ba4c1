#include "core/measure/noise.h"

#include <cmath>

#include "core/measure/mfu.h"
#include "core/measure/window.h"

using namespace infrarsi;

namespace {

// A run whose window has the given step times; the warm-up is one update of `first` seconds.
Receipt run_of(const std::vector<double>& times, double first = 5) {
    Receipt receipt;
    receipt.warmup = 1;
    receipt.updates = static_cast<int>(times.size()) + 1;
    double at = first;
    UpdateRecord update;
    update.n = 1;
    update.t_s = at;
    receipt.series.push_back(update);
    for (const double time : times) {
        at += time;
        update.n += 1;
        update.t_s = at;
        receipt.series.push_back(update);
    }
    return receipt;
}

}  // namespace

TEST_CASE("Student's distribution agrees with the tables", "[measure]") {
    const std::pair<double, double> beyond_two[] = {{1, 0.1476}, {2, 0.0918}, {3, 0.0697}, {4, 0.0581},
                                                    {6, 0.0462}, {9, 0.0383}, {19, 0.0300}};
    for (const auto& [degrees, tail] : beyond_two) {
        CHECK(1 - student_cdf(2, degrees) == Approx(tail).margin(6e-5));
        CHECK(student_cdf(-2, degrees) == Approx(tail).margin(6e-5));
    }
    CHECK(student_quantile(0.95, 1) == Approx(6.313752).epsilon(1e-6));
    CHECK(student_quantile(0.95, 2) == Approx(2.919986).epsilon(1e-6));
    CHECK(student_quantile(0.975, 10) == Approx(2.228139).epsilon(1e-6));
    CHECK(student_quantile(0.05, 5) == Approx(-2.015048).epsilon(1e-6));
    CHECK(student_quantile(0.95, 1e6) == Approx(1.644856).epsilon(1e-5));
    CHECK(student_cdf(0, 3) == Approx(0.5));
    for (const double p : {0.01, 0.3, 0.7, 0.999}) {
        CHECK(student_cdf(student_quantile(p, 2.5), 2.5) == Approx(p));
    }
}

TEST_CASE("window statistics", "[measure]") {
    auto receipt = run_of({1.0, 1.2, 0.8, 1.0, 1.1, 0.9});
    const auto stats = window_stats(receipt);
    REQUIRE(stats);
    CHECK(stats->count == 6);
    CHECK(stats->mean_s == Approx(1.0));
    CHECK(stats->median_s == Approx(1.0));
    CHECK(stats->first_half_s == Approx(1.0));
    CHECK(stats->second_half_s == Approx(1.0));
    CHECK(stats->effective_count <= 6);

    receipt.disturbed = {3};  // the 1.2 s update
    CHECK(window_step_times(receipt).size() == 5);
    CHECK(window_stats(receipt)->mean_s == Approx(0.96));

    receipt.series.erase(receipt.series.begin() + 3);  // a gap: neither of its sides is one update long
    CHECK(window_step_times(receipt).size() == 3);

    CHECK_FALSE(window_stats(Receipt{}));
}

TEST_CASE("positive correlation costs effective updates", "[measure]") {
    std::vector<double> slow;
    for (int i = 0; i < 60; ++i) {
        slow.push_back(1 + 0.1 * std::sin(i / 5.0));
    }
    const auto stats = window_stats(run_of(slow));
    REQUIRE(stats);
    CHECK(stats->autocorrelation > 0.9);
    CHECK(stats->effective_count < 6);
    CHECK(stats->drifting);
    std::vector<double> alternating;
    for (int i = 0; i < 60; ++i) {
        alternating.push_back(i % 2 == 0 ? 1.0 : 1.1);
    }
    CHECK(window_stats(run_of(alternating))->effective_count == Approx(60));
}

TEST_CASE("the noise floor is the largest of three estimates", "[measure]") {
    // Two quiet runs, 10 % apart: the pair estimate wins, with one degree of freedom.
    const auto far = estimate_noise({run_of(std::vector<double>(20, 1.0)), run_of(std::vector<double>(20, 1.1))});
    CHECK(far.winner == "pairs");
    CHECK(far.sigma_pair == Approx(std::log(1.1)));
    CHECK(far.degrees == 1);
    CHECK(search_gate(far) == Approx(2 * std::log(1.1)));

    // One run that slows down half way.
    std::vector<double> slowing(10, 1.0);
    slowing.insert(slowing.end(), 10, 1.05);
    const auto split = estimate_noise({run_of(slowing)});
    CHECK(split.winner == "split-half");
    CHECK(split.sigma_pair == Approx(std::log(1.05) / std::sqrt(2.0)));
    CHECK(split.from_pairs == 0);

    // Equal runs with step noise: luck, so the white-noise floor counts.
    std::vector<double> noisy;
    for (int i = 0; i < 20; ++i) {
        noisy.push_back(1 + 0.1 * std::sin(12.9898 * i * i));
    }
    const auto white = estimate_noise({run_of(noisy), run_of(noisy)});
    CHECK(white.winner == "white-noise");
    CHECK(white.sigma_pair == Approx(white.from_white));
    CHECK(white.degrees == 38);
    CHECK(search_gate(estimate_noise({})) == 0.02);
}

TEST_CASE("the loss noise is that of the repeats' difference", "[measure]") {
    auto a = run_of(std::vector<double>(4, 1.0)), b = a;
    for (std::size_t i = 0; i < a.series.size(); ++i) {
        a.series[i].loss = 3.0;
        b.series[i].loss = i % 2 == 0 ? 3.1 : 2.9;
    }
    CHECK(estimate_noise({a, b}).sigma_loss == Approx(0.1));
    CHECK(estimate_noise({a}).sigma_loss == 0);
}

TEST_CASE("pairs are added until the interval decides", "[measure]") {
    NoiseFloor noise;
    noise.sigma_pair = 0.02;
    noise.degrees = 2;
    CHECK(judge_pairs({}, noise).decision == Decision::undecided);

    // One block of +20 % with two degrees: 0.182 ± 2.92·0.02/√2 is clear of 0.04.
    const auto clear = judge_pairs({{std::log(1.2), std::log(1.2)}}, noise);
    CHECK(clear.decision == Decision::promote);
    CHECK(clear.low == Approx(std::log(1.2) - 2.919986 * 0.02 / std::sqrt(2.0)));
    CHECK(clear.margin == Approx(0.04));

    // +6 % is not yet clear after one block, and is after four that agree.
    const PairResult six{std::log(1.06), std::log(1.06)};
    CHECK(judge_pairs({six}, noise).decision == Decision::undecided);
    CHECK(judge_pairs({six, six, six, six, six, six}, noise).decision == Decision::promote);

    CHECK(judge_pairs({{-0.2, -0.2}}, noise).decision == Decision::reject);
    // A stall in few updates of the reference: the mean gains, the median does not.
    const auto tails = judge_pairs({{0.3, 0.01}}, noise);
    CHECK(tails.decision == Decision::undecided);
    CHECK(tails.reason.find("median") != std::string::npos);
    // Blocks that scatter more than the floor.
    CHECK(judge_pairs({{0.0, 0.0}, {0.4, 0.4}}, noise).decision == Decision::undecided);
    CHECK(judge_pairs({{std::nan(""), 0.1}}, noise).decision == Decision::reject);
}

TEST_CASE("MFU by the declared formula", "[measure]") {
    MfuInputs inputs;
    inputs.flops_per_update = 1e15;
    inputs.devices = 8;
    inputs.step_time_s = 0.5;
    CHECK_FALSE(mfu(inputs));  // no peak, no number
    inputs.peak_flops = 1e15;
    REQUIRE(mfu(inputs));
    CHECK(mfu(inputs)->value == Approx(0.25));
    inputs.step_time_s = 0;
    CHECK_FALSE(mfu(inputs));
    CHECK(transformer_flops({1000, 2, 8, 16}, 10) == Approx(10 * (6000 + 12 * 2 * 8 * 16)));
    CHECK(peak_flops("NVIDIA H100 80GB HBM3", "bf16") == Approx(989e12));
    CHECK(peak_flops("NVIDIA L4", "bf16") == Approx(121e12));
    CHECK_FALSE(peak_flops("NVIDIA L40", "bf16"));
    CHECK_FALSE(peak_flops("NVIDIA A100-SXM4-80GB", "fp8"));
    CHECK_FALSE(peak_flops("Intel(R) Xeon(R) Processor", "fp32"));
}
