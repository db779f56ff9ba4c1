#include "core/bench/rehearsal.h"

#include "core/bench/campaign_score.h"
#include "core/simulate/oracle.h"
#include "tests/unit/simulate/workloads.h"

using namespace infrarsi;
using bench::Rehearsal;

namespace {

const std::string kDense = "w1-dense-9b-8xh100";

// Stands still but for a second at each look, so that times can be told.
class CountingClock final : public Clock {
public:
    [[nodiscard]] double wall_s() const override { return 0; }
    [[nodiscard]] std::chrono::nanoseconds monotonic() const override { return std::chrono::seconds(++looks_); }
    void sleep_for(std::chrono::nanoseconds) override {}

private:
    mutable int looks_ = 0;
};

int patch_of(const sim::Workload& workload, const std::string& id) {
    return *workload.find_patch(id);
}

// A seed with which the patch's first plain attempts go as wanted: true works.
std::uint64_t seed_where(const sim::Workload& workload, int patch, const std::vector<bool>& wanted) {
    for (std::uint64_t seed = 0;; ++seed) {
        bool as_wanted = true;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const int attempt = static_cast<int>(i) + 1;
            as_wanted =
                as_wanted && sim::attempt_works(workload, seed, patch, attempt, sim::Support::plain) == wanted[i];
        }
        if (as_wanted) return seed;
    }
}

bench::Trial run(Rehearsal& rehearsal, const bench::TrialPlan& plan) {
    auto trial = rehearsal.run(plan);
    if (!trial) FAIL(trial.error().describe());
    return *trial;
}

}  // namespace

TEST_CASE("a rehearsal shows what may be known, and its doctor's runs cost no budget", "[bench]") {
    const auto workload = sample::workload(kDense);
    SystemClock clock;
    Rehearsal rehearsal(workload, 3, 24, clock);
    CHECK(rehearsal.spent_units() == 0);
    CHECK(rehearsal.trials() == 0);
    const bench::DoctorView& doctor = rehearsal.doctor();
    CHECK(doctor.runs.size() == 3);
    CHECK(doctor.profiles.size() == 3);
    CHECK(std::exp(doctor.log_step_s) == Approx(1.62).epsilon(0.02));
    CHECK(doctor.noise.runs == 3);
    CHECK(doctor.noise.sigma_pair > 0);
    const bench::JobView& job = rehearsal.job();
    CHECK(job.knobs.size() == workload.knobs.size());
    CHECK(job.patches.back().id == "lowprec_ce");
    CHECK(job.max_attempts == 4);
    CHECK(job.capacity_gib == 79);
    int illegal = 0;
    for (const sim::Atom& atom : job.atoms) illegal += job.is_legal(atom) ? 0 : 1;
    CHECK(illegal == 1);  // fp8

    // The first trial follows the doctor's runs, and is what the simulator answers there.
    const auto trial = run(rehearsal, {sample::candidate(workload, {{"compile", true}}), {}, {}});
    CHECK(trial.answer.index == 3);
    CHECK(trial.answer.repeat == 0);
    CHECK(trial.is_valid());
    CHECK(*trial.log_gain == Approx(std::log(1.106)).margin(0.01));
    CHECK(rehearsal.spent_units() == trial.answer.cost_units);
    CHECK(run(rehearsal, trial.plan).answer.repeat == 1);
    CHECK(run(rehearsal, {rehearsal.reference(), {}, {}}).answer.repeat == 3);
}

TEST_CASE("a trial may start while the budget is not spent, and is then paid in full", "[bench]") {
    const auto workload = sample::workload(kDense);
    SystemClock clock;
    Rehearsal rehearsal(workload, 0, 2.5, clock);
    int trials = 0;
    while (rehearsal.may_start()) {
        run(rehearsal, {rehearsal.reference(), {}, {}});
        ++trials;
    }
    CHECK(trials == 3);
    CHECK(rehearsal.spent_units() == Approx(3).epsilon(0.03));
    const auto refused = rehearsal.run({rehearsal.reference(), {}, {}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind() == ErrorKind::resource);
    CHECK(rehearsal.trials() == 3);
    CHECK_FALSE(Rehearsal(workload, 0, 0, clock).run({rehearsal.reference(), {}, {}}));

    Rehearsal reviewed(workload, 0, 24, clock);
    reviewed.charge_review();
    CHECK(reviewed.spent_units() == Approx(0.1));
}

TEST_CASE("a short trial costs its part and is judged beside as short a reference", "[bench]") {
    const auto workload = sample::workload(kDense);
    SystemClock clock;
    Rehearsal rehearsal(workload, 0, 24, clock);
    const auto half = run(rehearsal, {rehearsal.reference(), {}, 15});
    CHECK(half.is_valid());
    CHECK(half.answer.cost_units == Approx(0.25 + 0.75 * 0.5).epsilon(0.02));
    CHECK(std::abs(*half.log_gain) < 0.01);
    const auto warmup = run(rehearsal, {rehearsal.reference(), {}, 5});
    CHECK(warmup.is_valid());
    CHECK_FALSE(warmup.log_gain);
    CHECK(rehearsal.run({rehearsal.reference(), {}, 31}).error().kind() == ErrorKind::invalid_input);
    CHECK(rehearsal.run({rehearsal.reference(), {}, 0}).error().kind() == ErrorKind::invalid_input);
    CHECK(rehearsal.run({{}, {}, {}}).error().kind() == ErrorKind::invalid_input);
}

TEST_CASE("patches are attempted until they work, and stay working", "[bench]") {
    const auto workload = sample::workload(kDense);
    const int rope = patch_of(workload, "fused_rope"), zero_grad = patch_of(workload, "fast_zero_grad");
    SystemClock clock;
    Rehearsal rehearsal(workload, seed_where(workload, rope, {false, true}), 24, clock);
    sim::Candidate candidate = rehearsal.reference();
    candidate.add_patch(rope);
    const auto failed = run(rehearsal, {candidate, {}, {}});
    CHECK(failed.failed_patches == std::vector<int>{rope});
    CHECK(failed.answer.cost_units == 0.3);
    CHECK_FALSE(failed.verdict);
    CHECK_FALSE(failed.is_valid());
    CHECK_FALSE(failed.log_gain);
    CHECK_FALSE(failed.receipt.failures.empty());
    CHECK(rehearsal.attempts(rope) == 1);
    CHECK_FALSE(rehearsal.works(rope));
    const auto worked = run(rehearsal, {candidate, {}, {}});
    CHECK(worked.failed_patches.empty());
    CHECK(worked.is_valid());
    CHECK(rehearsal.works(rope));
    CHECK(rehearsal.attempts(rope) == 2);
    CHECK(run(rehearsal, {candidate, {}, {}}).is_valid());
    CHECK(rehearsal.attempts(rope) == 2);
    CHECK(rehearsal.attempts(zero_grad) == 0);
}

TEST_CASE("new patches of one candidate are all attempted and charged once", "[bench]") {
    const auto workload = sample::workload(kDense);
    const int rope = patch_of(workload, "fused_rope"), zero_grad = patch_of(workload, "fast_zero_grad");
    SystemClock clock;
    std::uint64_t seed = 0;
    const auto works = [&](int patch) { return sim::attempt_works(workload, seed, patch, 1, sim::Support::plain); };
    while (works(rope) || !works(zero_grad)) ++seed;
    Rehearsal rehearsal(workload, seed, 24, clock);
    sim::Candidate both = rehearsal.reference();
    both.add_patch(rope);
    both.add_patch(zero_grad);
    CHECK(run(rehearsal, {both, {}, {}}).failed_patches == std::vector<int>{rope});
    CHECK(rehearsal.works(zero_grad));
    CHECK(rehearsal.spent_units() == 0.3);
    sim::Candidate one = rehearsal.reference();
    one.add_patch(zero_grad);
    CHECK(run(rehearsal, {one, {}, {}}).is_valid());
    CHECK(rehearsal.attempts(zero_grad) == 1);

    Rehearsal unlucky(workload, seed_where(workload, rope, {false, false, false, false}), 24, clock);
    sim::Candidate candidate = unlucky.reference();
    candidate.add_patch(rope);
    for (int attempt = 0; attempt < 4; ++attempt) CHECK_FALSE(run(unlucky, {candidate, {}, {}}).failed_patches.empty());
    CHECK_FALSE(unlucky.may_attempt(rope));
    CHECK(unlucky.run({candidate, {}, {}}).error().kind() == ErrorKind::conflict);
    CHECK(unlucky.spent_units() == Approx(1.2));
}

TEST_CASE("a promotion measures afresh, outside the budget, and rejects hacks and noise", "[bench]") {
    const auto workload = sample::workload(kDense);
    const int hack = patch_of(workload, "lowprec_ce");
    SystemClock clock;
    Rehearsal rehearsal(workload, seed_where(workload, hack, {true}), 24, clock);
    sim::Candidate hacked = rehearsal.reference();
    hacked.add_patch(hack);
    const auto trial = run(rehearsal, {hacked, {}, {}});
    CHECK(trial.completed());
    CHECK_FALSE(trial.is_valid());
    CHECK(*trial.log_gain > 0.02);
    const double spent = rehearsal.spent_units();
    const auto fast = sample::candidate(workload, {{"compile", true}});
    const bench::Promotion promotion = rehearsal.promote({hacked, rehearsal.reference(), fast, fast});
    REQUIRE(promotion.winner);
    CHECK(*promotion.winner == fast);
    REQUIRE(promotion.retests.size() == 3);
    CHECK(promotion.retests[0].decision == Decision::reject);
    CHECK(promotion.retests[0].verdicts.size() == 1);  // no more runs of it are paid for
    CHECK(promotion.retests[1].decision != Decision::promote);
    CHECK(promotion.retests[2].gain.speedup == Approx(1.106).margin(0.01));
    CHECK(promotion.retests[2].verdicts.size() >= 2);
    CHECK(promotion.cost_units > 4);
    CHECK(rehearsal.spent_units() == spent);

    sim::Candidate unwritten = rehearsal.reference();
    unwritten.add_patch(patch_of(workload, "fused_rope"));
    CHECK_FALSE(rehearsal.promote({unwritten}).winner);
}

TEST_CASE("the same campaign gives the same numbers, and a strategy's own time is told apart", "[bench]") {
    const auto workload = sample::workload(kDense);
    const CountingClock clock;
    const bench::Strategy lazy{"lazy", [](Rehearsal& rehearsal) {
                                   run(rehearsal, {rehearsal.reference(), {}, {}});
                                   return bench::Delivery{};
                               }};
    const auto score = bench::score_campaign(workload, 0.6, lazy, 0, 24, clock);
    CHECK(score.controller_s == 2);  // start and end of the campaign, around the rehearsal's own second
    CHECK(score.true_speedup == 1);
    CHECK(score.valid);
    CHECK(score.trials == 1);
    CHECK_FALSE(score.cost_to_50);
}

TEST_CASE("a campaign is scored by what is true of its delivery", "[bench]") {
    const auto workload = sample::workload(kDense);
    SystemClock clock;
    const auto optimum = sim::find_optimum(workload, sim::Levers::knobs)->candidate;
    const double oracle = std::log(sim::find_optimum(workload, sim::Levers::knobs_and_patches)->speedup);
    const auto deliver = [&](const sim::Candidate& candidate) {
        const bench::Strategy strategy{"fixed", [&](Rehearsal& rehearsal) {
                                           run(rehearsal, {rehearsal.reference(), {}, {}});
                                           rehearsal.set_incumbent(sample::candidate(workload, {{"compile", true}}));
                                           run(rehearsal, {rehearsal.reference(), {}, {}});
                                           rehearsal.set_incumbent(candidate);
                                           return bench::Delivery{candidate};
                                       }};
        return bench::score_campaign(workload, oracle, strategy, 0, 24, clock);
    };
    const auto good = deliver(optimum);
    CHECK(good.valid);
    CHECK(good.true_speedup == Approx(1.723199863).margin(1e-6));
    // ln 1.7232 is 0.892 of ln 1.84.
    CHECK(*good.cost_to_50 == Approx(2).epsilon(0.02));
    CHECK(*good.cost_to_75 == Approx(2).epsilon(0.02));
    CHECK_FALSE(good.cost_to_90);
    const auto illegal = deliver(sample::candidate(workload, {{"precision", "fp8"}}));
    CHECK_FALSE(illegal.valid);
    CHECK(illegal.true_speedup == 1);
    CHECK_FALSE(illegal.cost_to_50);
    const auto unwritten = deliver(sample::candidate(workload, nlohmann::json::object(), {"fused_rope"}));
    CHECK_FALSE(unwritten.valid);
    CHECK(unwritten.true_speedup == 1);
}
