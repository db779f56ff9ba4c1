#include "core/simulate/oracle.h"

#include "workloads.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

// A random small workload where settings, patches and memory pull against each other.
sim::Workload random_workload(std::uint64_t seed) {
    sim::RandomStream luck({"oracle test", std::to_string(seed)});
    const auto between = [&](double low, double high) { return low + (high - low) * luck.uniform(); };
    const auto phases = [&] {
        sim::PerPhase factors = sim::kNoEffect;
        for (double& factor : factors) {
            if (luck.uniform() < 0.3) factor = between(0.5, 1.3);
        }
        return factors;
    };
    sim::Workload workload;
    workload.name = "random";
    workload.shares.fill(0.125);
    workload.device.capacity_gib = between(45, 75);
    workload.memory = {.base_gib = 40, .activation_gib = 10, .thrash_from = 0.9, .thrash_slowdown = 0.2};
    for (int k = 0; k < 6; ++k) {
        sim::Knob knob;
        knob.name = fmt::format("knob{}", k);
        for (int v = 0; v < 3; ++v) {
            sim::KnobValue value;
            value.value = std::int64_t{v};
            if (v > 0) {
                value.phases = phases();
                value.memory_gib = luck.uniform() < 0.5 ? between(-8, 12) : 0;
                value.activation_factor = luck.uniform() < 0.3 ? between(0.5, 2) : 1;
                value.is_legal = luck.uniform() < 0.9;
            }
            knob.values.push_back(value);
        }
        workload.knobs.push_back(knob);
    }
    const auto setting = [&](int from) {
        return sim::Setting{from + static_cast<int>(2 * luck.uniform()), static_cast<int>(3 * luck.uniform())};
    };
    for (int i = 0; i < 2; ++i) {
        workload.interactions.push_back({{setting(0), setting(2)}, phases(), between(-25, 5)});
        workload.conflicts.push_back({{setting(2), setting(4)}, sim::Conflict::Kind::hang, "", {}});
    }
    for (int i = 0; i < 4; ++i) {
        sim::Patch patch;
        patch.id = fmt::format("patch{}", i);
        patch.phases = phases();
        patch.memory_gib = luck.uniform() < 0.5 ? between(-4, 4) : 0;
        if (i == 1) patch.requirements = {setting(0)};
        patch.attenuations = {{{setting(4)}, between(0.3, 1.5)}};
        patch.is_hack = i == 3;
        workload.patches.push_back(patch);
    }
    return workload;
}

// Every candidate, one after the other.
double best_by_force(const sim::Workload& workload, sim::Levers levers) {
    sim::Candidate candidate = sim::reference_candidate(workload);
    std::fill(candidate.values.begin(), candidate.values.end(), 0);
    double best = 0;
    const std::uint64_t sets = levers == sim::Levers::knobs ? 1 : std::uint64_t{1} << workload.patches.size();
    while (true) {
        for (candidate.patches = 0; candidate.patches < sets; ++candidate.patches) {
            const sim::Truth found = sim::truth(workload, candidate);
            if (found.kind == sim::Kind::ok) best = std::max(best, 1 / found.rel_time);
        }
        std::size_t k = 0;
        while (k < candidate.values.size() && ++candidate.values[k] == 3) candidate.values[k++] = 0;
        if (k == candidate.values.size()) return best;
    }
}

}  // namespace

TEST_CASE("the optima are those of the vectors", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        INFO(name);
        const sim::Workload workload = sample::workload(name);
        const json facts = sample::facts(name);
        for (const auto& [key, levers] :
             {std::pair("oracle", sim::Levers::knobs_and_patches), std::pair("knob_oracle", sim::Levers::knobs)}) {
            const auto optimum = sim::find_optimum(workload, levers);
            REQUIRE(optimum);
            const json& wanted = facts[key];
            CHECK(optimum->speedup == Approx(wanted["speedup"].get<double>()).margin(1e-6));
            CHECK(sim::truth(workload, optimum->candidate).kind == sim::Kind::ok);
            CHECK(1 / sim::truth(workload, optimum->candidate).rel_time == optimum->speedup);
            const auto known = sample::candidate(workload, wanted["settings"], wanted["patches"]);
            CHECK(1 / sim::truth(workload, known).rel_time == Approx(optimum->speedup).margin(1e-9));
        }
        CHECK(sim::find_optimum(workload, sim::Levers::knobs_and_patches)->speedup ==
              Approx(*workload.expected.ceiling).margin(1e-6));
        CHECK(sim::find_optimum(workload, sim::Levers::knobs)->speedup ==
              Approx(*workload.expected.knob_ceiling).margin(1e-6));
    }
}

TEST_CASE("branch and bound finds what trying everything finds", "[simulate]") {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        INFO("seed " << seed);
        const sim::Workload workload = random_workload(seed);
        for (const auto levers : {sim::Levers::knobs, sim::Levers::knobs_and_patches}) {
            const auto optimum = sim::find_optimum(workload, levers);
            CHECK((optimum ? optimum->speedup : 0) == Approx(best_by_force(workload, levers)).margin(1e-12));
        }
    }
}

TEST_CASE("where nothing can be delivered there is no optimum", "[simulate]") {
    const auto workload = sample::workload("w1-dense-9b-8xh100", {"memory.base_gib=640"});
    CHECK_FALSE(sim::find_optimum(workload, sim::Levers::knobs_and_patches));
}
