#include "core/simulate/proposer.h"

#include "workloads.h"

using namespace infrarsi;

namespace {

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto ranks = [](const std::vector<double>& values) {
        std::vector<double> result;
        for (const double value : values) {
            result.push_back(static_cast<double>(
                std::count_if(values.begin(), values.end(), [&](double other) { return other < value; })));
        }
        return result;
    };
    const auto left = ranks(a);
    const auto right = ranks(b);
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += (left[i] - right[i]) * (left[i] - right[i]);
    const auto n = static_cast<double>(a.size());
    return 1 - 6 * squares / (n * (n * n - 1));
}

// Between beliefs and truth, as someone outside computes it.
double realised(const sim::Workload& workload, const sim::Beliefs& beliefs) {
    std::vector<double> truths;
    std::vector<double> priors;
    for (const sim::Atom& atom : beliefs.atoms) {
        truths.push_back(sim::true_log_gain(workload, atom));
        priors.push_back(atom.prior_log_gain);
    }
    return rank_correlation(truths, priors);
}

}  // namespace

TEST_CASE("beliefs have the rank correlation that they aim at", "[simulate]") {
    constexpr int kSeeds = 200;
    for (const std::string& name : sample::workload_names()) {
        const auto workload = sample::workload(name, {"prior.overrides=[]"});
        int inside = 0;
        for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
            const sim::Beliefs beliefs = sim::draw_beliefs(workload, seed);
            INFO(name << " seed " << seed);
            CHECK(std::abs(*beliefs.spearman - *beliefs.target_spearman) < 0.015);
            // Atoms whose truths are equal (two values of a knob) have no rank of their own.
            CHECK(realised(workload, beliefs) == Approx(*beliefs.spearman).margin(0.02));
            CHECK(*beliefs.target_spearman >= workload.prior.spearman_low);
            CHECK(*beliefs.target_spearman <= workload.prior.spearman_high);
            if (*beliefs.spearman >= workload.prior.spearman_low && *beliefs.spearman <= workload.prior.spearman_high) {
                ++inside;
            }
        }
        INFO(name << inside);
        CHECK(inside >= 0.95 * kSeeds);
    }
}

TEST_CASE("beliefs can be set: another correlation, or none", "[simulate]") {
    const auto opposed = sample::workload("w4-moe-35b-16xh100", {"prior.spearman=[-0.5, -0.5]"});
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CHECK(*sim::draw_beliefs(opposed, seed).spearman == Approx(-0.5).margin(0.015));
    }
    const auto flat = sample::workload("w4-moe-35b-16xh100", {"prior.flat=true"});
    const sim::Beliefs beliefs = sim::draw_beliefs(flat, 0);
    CHECK_FALSE(beliefs.spearman);
    for (const sim::Atom& atom : beliefs.atoms) {
        CHECK(atom.prior_log_gain == (atom.is_blind ? -0.01005033585350145 : 0.035));
    }
}

TEST_CASE("an override is a belief that even a knowledgeable agent has", "[simulate]") {
    const auto workload = sample::workload("w4-moe-35b-16xh100");
    for (const sim::Atom& atom : sim::draw_beliefs(workload, 9).atoms) {
        INFO(atom.name);
        CHECK(atom.is_blind == (atom.name == "nccl_min_channels=32"));
        if (atom.is_blind) CHECK(atom.prior_log_gain == -0.01005033585350145);
    }
}

TEST_CASE("beliefs have the marginal that the file gives", "[simulate]") {
    const auto workload = sample::workload("w2-moe-26b-8xh200", {"prior.overrides=[]"});
    double sum = 0;
    double squares = 0;
    int count = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        for (const sim::Atom& atom : sim::draw_beliefs(workload, seed).atoms) {
            sum += atom.prior_log_gain;
            squares += atom.prior_log_gain * atom.prior_log_gain;
            ++count;
        }
    }
    const double mean = sum / count;
    CHECK(mean == Approx(0.035).margin(0.005));
    CHECK(std::sqrt(squares / count - mean * mean) == Approx(0.045).epsilon(0.1));
}

TEST_CASE("attempts at a patch work as often as they should", "[simulate]") {
    const auto workload = sample::workload("w4-moe-35b-16xh100");
    const int patch = *workload.find_patch("fused_swiglu");
    const sim::Patch& rare = workload.patches[static_cast<std::size_t>(patch)];
    CHECK(sim::attempt_chance(rare, 1, sim::Support::checked) == 0.03);
    CHECK(sim::attempt_chance(rare, 3, sim::Support::plain) == 0.03);
    CHECK(sim::attempt_chance(rare, 3, sim::Support::feedback) == Approx(0.23));
    CHECK(sim::attempt_chance(rare, 4, sim::Support::checked) == Approx(0.78));
    CHECK(sim::attempt_chance(rare, 9, sim::Support::checked) == 0.98);
    int worked = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        for (int attempt = 1; attempt <= 4; ++attempt) {
            if (!sim::attempt_works(workload, seed, patch, attempt, sim::Support::checked)) continue;
            ++worked;
            break;
        }
    }
    CHECK(worked / 2000.0 == Approx(1 - 0.97 * 0.72 * 0.47 * 0.22).margin(0.02));
}
