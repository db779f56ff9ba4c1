#include "core/search/features.h"

#include "core/search/priors.h"
#include "landscape.h"

using namespace infrarsi;
using search_test::knob;
using search_test::text;
using search_test::whole;

namespace {

Contract small_contract() {
    Contract contract;
    contract.knobs = {knob("micro_batch", "micro_batch", {whole(2), whole(4), whole(8)}, whole(2)),
                      knob("compile", "compile", {false, true}, false),
                      knob("threads", "host.omp_threads", {Value{}, whole(2)}, Value{}),
                      knob("fixed", "", {text("a")}, text("a"))};
    return contract;
}

}  // namespace

TEST_CASE("the reference is the empty row", "[search]") {
    const Contract contract = small_contract();
    const FeatureSpace space(contract);
    CHECK(space.size() == 5);  // three other values of two knobs, one of threads, one slope
    CHECK(space.time_row({}).empty());
    CHECK(space.time_row({.settings = {{"compile", true}}, .patches = {}}).size() == 1);
    CHECK(space.time_row({.settings = {{"compile", false}}, .patches = {}}).empty());
    CHECK(space.time_row({.settings = {{"fixed", text("a")}, {"threads", Value{}}}, .patches = {}}).empty());
}

TEST_CASE("slopes go by doublings in time and in proportion in memory", "[search]") {
    const Contract contract = small_contract();
    const FeatureSpace space(contract);
    const Candidate candidate{.settings = {{"micro_batch", whole(8)}}, .patches = {}};
    const SparseRow time = space.time_row(candidate);
    const SparseRow memory = space.memory_row(candidate);
    REQUIRE(time.size() == 2);
    CHECK(time.back().value == Approx(2));
    CHECK(memory.back().value == Approx(3));
}

TEST_CASE("one effect in two spellings is one candidate", "[search]") {
    const Contract contract = small_contract();
    FeatureSpace space(contract);
    const Patch patch{.title = "p", .diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", .origin = "user"};
    const Candidate loose{.settings = {{"micro_batch", text("4")}, {"compile", text("true")}, {"threads", Value{}}},
                          .patches = {patch, patch}};
    const Candidate tight = space.canonical(loose);
    CHECK(tight.settings == Settings{{"compile", true}, {"micro_batch", whole(4)}});
    CHECK(tight.patches.size() == 1);
    space.cover(tight);
    space.cover(tight);
    CHECK(space.size() == 6);
    CHECK(space.time_row(tight).size() == 4);
}

TEST_CASE("settings of an older contract get features of their own", "[search]") {
    const Contract contract = small_contract();
    FeatureSpace space(contract);
    space.cover({.settings = {{"gone", whole(3)}, {"micro_batch", whole(16)}}, .patches = {}});
    CHECK(space.size() == 7);
    CHECK(space.time_row({.settings = {{"gone", whole(3)}}, .patches = {}}).size() == 1);
}

TEST_CASE("rules rate mechanisms by direction, width and memory", "[search]") {
    const PriorScale scale{.memory_gib = 40, .phases = {}};
    const Knob recompute =
        knob("r", "activation_recompute", {text("none"), text("selective"), text("full")}, text("full"));
    const SettingPrior off = setting_prior(recompute, text("none"), scale);
    const SettingPrior half = setting_prior(recompute, text("selective"), scale);
    CHECK(off.log_gain == Approx(0.2));
    CHECK(off.gib > 8);
    CHECK(half.log_gain == Approx(0.1));
    CHECK(half.gib == Approx(off.gib / 2));

    const Knob batch = knob("m", "micro_batch", {whole(2), whole(4), whole(1)}, whole(2));
    CHECK(setting_prior(batch, whole(4), scale).log_gain > 0);
    CHECK(setting_prior(batch, whole(4), scale).gib > 0);
    CHECK(setting_prior(batch, whole(1), scale).log_gain < 0);
    CHECK(setting_prior(batch, whole(1), scale).gib < 0);

    const Knob compile = knob("c", "compile", {false, true}, true);
    CHECK(setting_prior(compile, false, scale).log_gain < 0);
    CHECK(setting_prior(knob("u", "", {false, true}, false), true, scale).log_gain == 0);
    // No rule is sure enough to veto: two sigma over nothing is worth a look.
    for (const char* mechanism : {"compile", "nccl.algo", "torch.avoid_record_streams", "offload.optimizer", "what?"}) {
        const SettingPrior prior = setting_prior(knob("k", mechanism, {false, true}, false), true, scale);
        CHECK(prior.sigma >= 0.05);
        CHECK(prior.sigma >= 0.5 * std::abs(prior.log_gain));
    }
}

TEST_CASE("a width has a floor from the phases that a setting touches", "[search]") {
    PriorScale scale{.memory_gib = 40, .phases = {.forward = 0.3, .backward = 0.5, .optimizer = 0.1, .known = true}};
    const Knob fused = knob("f", "optim.fused", {false, true}, false);
    const Knob kernel = knob("k", "kernel.rope_fusion", {false, true}, false);
    CHECK(setting_prior(fused, true, scale).sigma == Approx(0.06));
    CHECK(setting_prior(kernel, true, scale).sigma == Approx(0.3 * 0.8));
    scale.phases.known = false;
    CHECK(setting_prior(kernel, true, scale).sigma == Approx(0.06));
}

TEST_CASE("short mechanism names and levels are understood", "[search]") {
    CHECK(canonical_mechanism("micro_batch") == "batch.micro_batch");
    CHECK(canonical_mechanism("compile") == "compile.enable");
    CHECK(canonical_mechanism("nccl.algo") == "nccl.algo");
    CHECK(switch_level(Value{}) == 0);
    CHECK(switch_level(text("none")) == 0);
    CHECK(switch_level(text("selective")) == 0.5);
    CHECK(switch_level(text("full")) == 1);
    CHECK(switch_level(whole(0)) == 0);
    CHECK(switch_level(true) == 1);
}
