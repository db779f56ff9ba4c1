// The statistics that the noise of a simulated job must have. Streams are fixed, so these never fail by chance.

#include <numeric>

#include "workloads.h"

using namespace infrarsi;

namespace {

const char* const kFirst = "w1-dense-9b-8xh100";

std::vector<double> window(const sim::Workload& workload, const sim::Answer& answer) {
    return {answer.step_times_s.begin() + workload.job.warmup, answer.step_times_s.end()};
}

double mean_of(const std::vector<double>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

double median_of(std::vector<double> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return (numbers[(numbers.size() - 1) / 2] + numbers[numbers.size() / 2]) / 2;
}

double sd_of(const std::vector<double>& numbers) {
    const double mean = mean_of(numbers);
    double squares = 0;
    for (const double number : numbers) squares += (number - mean) * (number - mean);
    return std::sqrt(squares / static_cast<double>(numbers.size()));
}

sim::Request run_of(const sim::Workload& workload, std::int64_t repeat) {
    sim::Request request;
    request.candidate = sim::reference_candidate(workload);
    request.index = 0;
    request.repeat = repeat;
    request.detail = sim::Detail::times;
    return request;
}

}  // namespace

TEST_CASE("two window means differ by sigma_pair", "[simulate]") {
    for (const char* within_run : {"0", "0.5", "1"}) {
        const auto workload =
            sample::workload(kFirst, {"noise.drift.innovation=0", "noise.stall.probability=0",
                                      std::string("noise.within_run=") + within_run, "noise.sigma_pair=0.004"});
        sim::Simulator simulator(workload, 5);
        std::vector<double> differences;
        constexpr int kPairs = 5000;  // the sd's own error is 1 %
        for (int i = 0; i < kPairs; ++i) {
            const double one = mean_of(window(workload, simulator.answer(run_of(workload, 2 * i))));
            const double other = mean_of(window(workload, simulator.answer(run_of(workload, 2 * i + 1))));
            differences.push_back(std::log(one / other));
        }
        INFO(within_run);
        CHECK(sd_of(differences) == Approx(0.004).epsilon(0.03));
        CHECK(std::abs(mean_of(differences)) < 4 * 0.004 / std::sqrt(kPairs));
    }
}

TEST_CASE("a stall moves the mean of a window and not its median", "[simulate]") {
    const std::vector<std::string> quiet = {"noise.drift.innovation=0", "noise.sigma_pair=0.0001"};
    auto stalling = quiet;
    stalling.insert(stalling.end(), {"noise.stall.probability=1", "noise.stall.scale=0.01"});
    auto steady = quiet;
    steady.push_back("noise.stall.probability=0");
    const auto with = sample::workload(kFirst, stalling);
    const auto without = sample::workload(kFirst, steady);
    sim::Simulator stalls(with, 1);
    sim::Simulator runs(without, 1);
    std::vector<double> sizes;
    std::set<std::size_t> places;
    for (int i = 0; i < 2000; ++i) {
        const auto stalled = window(with, stalls.answer(run_of(with, i)));
        const auto plain = window(without, runs.answer(run_of(without, i)));
        std::size_t different = 0;
        for (std::size_t u = 0; u < plain.size(); ++u) {
            if (stalled[u] == plain[u]) continue;
            ++different;
            places.insert(u);
        }
        CHECK(different == 1);
        CHECK(median_of(stalled) == Approx(median_of(plain)).epsilon(0.0003));
        sizes.push_back(mean_of(stalled) / mean_of(plain) - 1);
    }
    CHECK(places.size() == 20);
    // Pareto of index 2 from 0.01 on: never less, median √2 of it, a tenth above √10.
    CHECK(*std::min_element(sizes.begin(), sizes.end()) > 0.0099);
    CHECK(median_of(sizes) == Approx(0.01 * std::sqrt(2)).epsilon(0.05));
    const auto far = std::count_if(sizes.begin(), sizes.end(), [](double size) { return size > 0.01 * std::sqrt(10); });
    CHECK(static_cast<double>(far) / 2000 == Approx(0.1).margin(0.03));
}

TEST_CASE("stalls are as rare as the file says", "[simulate]") {
    const auto workload = sample::workload(kFirst, {"noise.stall.probability=0.03", "noise.stall.scale=1"});
    sim::Simulator simulator(workload, 2);
    int stalled = 0;
    for (int i = 0; i < 5000; ++i) {
        if (mean_of(window(workload, simulator.answer(run_of(workload, i)))) > 1.5 * workload.job.step_time_s)
            ++stalled;
    }
    CHECK(stalled / 5000.0 == Approx(0.03).margin(0.008));
}

TEST_CASE("drift is a walk with the stated memory and size", "[simulate]") {
    const auto workload = sample::workload(kFirst);
    sim::Simulator simulator(workload, 3);
    constexpr int kTrials = 20'000;
    std::vector<double> drift;
    for (int i = 0; i < kTrials; ++i) drift.push_back(simulator.drift(i));
    double products = 0;
    double squares = 0;
    for (std::size_t i = 1; i < drift.size(); ++i) {
        products += drift[i] * drift[i - 1];
        squares += drift[i] * drift[i];
    }
    CHECK(products / squares == Approx(0.8).margin(0.02));
    CHECK(sd_of(drift) == Approx(0.001 * 0.6 / std::sqrt(1 - 0.8 * 0.8)).epsilon(0.05));
    // It shifts the whole run, and the first trial has it too.
    const auto still = sample::workload(kFirst, {"noise.drift.innovation=0"});
    sim::Simulator without(still, 3);
    for (const std::int64_t index : {0, 1, 17}) {
        sim::Request request = run_of(workload, 0);
        request.index = index;
        const double shift = std::log(mean_of(window(workload, simulator.answer(request))) /
                                      mean_of(window(still, without.answer(request))));
        CHECK(shift == Approx(simulator.drift(index)).margin(1e-8));
    }
}
