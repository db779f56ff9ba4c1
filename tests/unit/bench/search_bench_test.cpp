#include "core/bench/search_bench.h"

#include "core/bench/bench_summary.h"
#include "tests/unit/simulate/workloads.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

bench::SearchBench plan_of(const std::vector<std::string>& workloads, const std::vector<std::string>& strategies,
                           std::uint64_t seeds) {
    bench::SearchBench plan;
    for (const std::string& name : workloads) plan.workloads.push_back(sample::workload(name));
    for (const std::string& name : strategies) {
        auto strategy = bench::find_strategy(name);
        if (!strategy) FAIL(strategy.error().describe());
        plan.strategies.push_back(*strategy);
    }
    plan.seeds = seeds;
    return plan;
}

std::vector<bench::CampaignScore> scores_of(const bench::SearchBench& plan) {
    SystemClock clock;
    auto scores = bench::run_search_bench(plan, clock);
    if (!scores) FAIL(scores.error().describe());
    return *scores;
}

json without_time(const bench::CampaignScore& score) {
    json body = bench::to_json(score);
    body.erase("controller_s");
    return body;
}

bench::CampaignScore score(const std::string& strategy, std::uint64_t seed, double speedup) {
    bench::CampaignScore result;
    result.workload = "w";
    result.strategy = strategy;
    result.seed = seed;
    result.true_speedup = speedup;
    return result;
}

}  // namespace

TEST_CASE("scores do not depend on the number of threads, and come in order", "[bench]") {
    auto plan = plan_of({"w1-dense-9b-8xh100", "w4-moe-35b-16xh100"}, {"random", "greedy"}, 3);
    plan.first_seed = 40;
    plan.budget_units = 6;
    const auto alone = scores_of(plan);
    REQUIRE(alone.size() == 12);
    CHECK(alone[4].workload == "w1-dense-9b-8xh100");
    CHECK(alone[4].strategy == "greedy");
    CHECK(alone[4].seed == 41);
    plan.threads = 4;
    std::vector<json> told;
    SystemClock clock;
    const auto together = bench::run_search_bench(
        plan, clock, [&](const bench::CampaignScore& each) { told.push_back(without_time(each)); });
    REQUIRE(together);
    REQUIRE(told.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(without_time(alone[i]) == without_time((*together)[i]));
        CHECK(without_time(alone[i]) == told[i]);
    }
}

// Mean ln of SIMULATOR.md §8, by 200 seeds; here fewer, with four standard errors of such a mean to spare. The full
// check is `infrarsi bench search seeds/workloads/*.yaml --seeds 0:200`, within 0.04.
TEST_CASE("the baselines land where the specification says", "[bench]") {
    const std::vector<std::string> strategies = {"random", "tpe", "coordinate", "greedy", "best-of-4"};
    const std::vector<std::vector<double>> wanted = {{0.316, 0.254, 0.275, 0.406, 0.426},
                                                     {0.406, 0.305, 0.243, 0.263, 0.258},
                                                     {0.150, 0.106, 0.160, 0.281, 0.299},
                                                     {0.027, 0.027, 0.167, 0.153, 0.131}};
    const auto summaries = bench::summarise(scores_of(plan_of(sample::workload_names(), strategies, 16)));
    REQUIRE(summaries.size() == 20);
    for (std::size_t i = 0; i < summaries.size(); ++i) {
        INFO(summaries[i].workload << " " << summaries[i].strategy);
        CHECK(summaries[i].mean_ln == Approx(wanted[i / 5][i % 5]).margin(0.16));
        CHECK(summaries[i].invalid_share == 0);
        CHECK(summaries[i].mean_cost_units >= (summaries[i].strategy == "coordinate" ? 8 : 24));
        CHECK(summaries[i].mean_cost_units < 26.5);
        if (summaries[i].strategy == "coordinate") CHECK(summaries[i].mean_trials <= 20);
        // It moves to where runs complete, which are dearer than failures, so that fewer fit into the budget.
        if (summaries[i].strategy == "tpe") CHECK(summaries[i].mean_trials < 40);
    }
}

// A sixth of the budget; at 24 units `infrarsi bench search` shows what it is worth.
TEST_CASE("our planner delivers what holds, more than an agent for the same cost", "[bench]") {
    auto plan = plan_of({"w1-dense-9b-8xh100"}, {"infrarsi", "infrarsi-full", "greedy"}, 2);
    plan.budget_units = 4;
    plan.threads = 2;
    const auto scores = scores_of(plan);
    const auto summaries = bench::summarise(scores);
    REQUIRE(summaries.size() == 3);
    double planner = 0, agent = 0;
    for (std::size_t i = 0; i < summaries.size(); ++i) {
        INFO(summaries[i].workload << " " << summaries[i].strategy);
        CHECK(summaries[i].invalid_share == 0);
        CHECK(summaries[i].mean_cost_units < 6);
        if (summaries[i].strategy == "infrarsi") planner += summaries[i].mean_ln;
        if (summaries[i].strategy == "greedy") agent += summaries[i].mean_ln;
    }
    CHECK(planner > agent);
    // Short runs buy more trials, and the same seed gives the same campaign.
    CHECK(summaries[0].mean_trials > summaries[1].mean_trials);
    plan.threads = 1;
    plan.seeds = 1;
    const auto again = scores_of(plan);
    CHECK(without_time(again.front()) == without_time(scores.front()));
}

TEST_CASE("without a verifier an agent delivers hacks", "[bench]") {
    const auto summaries = bench::summarise(
        scores_of(plan_of({"w1-dense-9b-8xh100"}, {"greedy", "greedy-unverified", "random-unverified"}, 8)));
    CHECK(summaries[0].invalid_share == 0);
    CHECK(summaries[1].invalid_share > 0.7);
    CHECK(*summaries[1].difference < -0.2);
    CHECK(summaries[2].invalid_share == 0);  // it has no patches and draws legal values only
}

TEST_CASE("a summary compares strategies seed by seed", "[bench]") {
    std::vector<bench::CampaignScore> scores;
    for (std::uint64_t seed = 0; seed < 11; ++seed) {
        scores.push_back(score("one", seed, 1 + 0.1 * static_cast<double>(seed)));
        scores.back().trials = 10;
        if (seed > 4) scores.back().cost_to_90 = static_cast<double>(seed);
    }
    for (std::uint64_t seed = 0; seed < 11; ++seed) {
        // 5 % faster whatever the seed: pairing takes the luck out altogether.
        scores.push_back(score("other", seed, 1.05 * (1 + 0.1 * static_cast<double>(seed))));
        scores.back().valid = seed != 3;
        if (seed > 5) scores.back().cost_to_90 = 1;
    }
    const auto cells = bench::summarise(scores);
    REQUIRE(cells.size() == 2);
    CHECK(cells[0].median == Approx(1.5));
    CHECK(cells[0].p10 == Approx(1.1));
    CHECK(cells[0].p90 == Approx(1.9));
    CHECK(cells[0].share_to_90 == Approx(6.0 / 11));
    CHECK(*cells[0].median_cost_to_90 == 10);
    CHECK(cells[0].mean_trials == 10);
    CHECK_FALSE(cells[0].difference);
    CHECK_FALSE(cells[1].median_cost_to_90);
    CHECK(cells[1].invalid_share == Approx(1.0 / 11));
    CHECK(*cells[1].difference == Approx(std::log(1.05)));
    CHECK(*cells[1].difference_low == Approx(std::log(1.05)));
    CHECK(*cells[1].difference_high == Approx(std::log(1.05)));
    CHECK(bench::to_json(cells[1])["median_cost_to_90"].is_null());

    // With luck of its own, the interval has about the width that the spread says.
    for (std::uint64_t seed = 0; seed < 11; ++seed) {
        scores[11 + seed].true_speedup = scores[seed].true_speedup * (seed % 2 == 0 ? 1.2 : 0.9);
    }
    const auto noisy = bench::summarise(scores)[1];
    CHECK(*noisy.difference_low < *noisy.difference);
    CHECK(*noisy.difference < *noisy.difference_high);
    CHECK(*noisy.difference_high - *noisy.difference_low == Approx(2 * 1.96 * 0.1433 / std::sqrt(11.0)).epsilon(0.15));
    const auto again = bench::summarise(scores)[1];
    CHECK(bench::to_json(again) == bench::to_json(noisy));
    CHECK(bench::render_table(cells).find("never") != std::string::npos);
}

TEST_CASE("a quantile lies between its neighbours, infinite ones too", "[bench]") {
    CHECK(bench::quantile_of_sorted({1, 2, 4}, 0.5) == 2);
    CHECK(bench::quantile_of_sorted({1, 2, 4}, 0.75) == 3);
    CHECK(bench::quantile_of_sorted({1, HUGE_VAL}, 0) == 1);
    CHECK(bench::quantile_of_sorted({1, HUGE_VAL}, 0.5) == HUGE_VAL);
    CHECK(bench::quantile_of_sorted({HUGE_VAL}, 0.5) == HUGE_VAL);
}

TEST_CASE("a bench refuses what it cannot play", "[bench]") {
    SystemClock clock;
    const auto refuse = [&](const std::vector<sim::Workload>& workloads) {
        bench::SearchBench plan;
        plan.workloads = workloads;
        const auto scores = bench::run_search_bench(plan, clock);
        REQUIRE_FALSE(scores);
        CHECK(scores.error().kind() == ErrorKind::invalid_input);
        return scores.error().message();
    };
    const std::string name = "w1-dense-9b-8xh100";
    CHECK(refuse({sample::workload(name, {"device.capacity_gib=40"})}) ==
          "the reference of w1-dense-9b-8xh100 cannot be delivered (oom): no campaign can start");
    CHECK(refuse({sample::workload(name), sample::workload(name)}).find("two workloads are named") == 0);
    auto brief = sample::workload(name);
    brief.job.updates = 11;
    CHECK(refuse({brief}).find("its window needs at least two") != std::string::npos);

    const auto unknown = bench::find_strategy("gredy");
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().message() == "there is no strategy gredy (did you mean \"greedy\"?)");
}
