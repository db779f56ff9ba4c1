#include "core/simulate/workload.h"

#include "workloads.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

const char* const kFirst = "w1-dense-9b-8xh100";

struct BadFile {
    std::string old_text, new_text;  // in the first workload
    int line;                        // of the place, 0: not looked at
    std::string says;
};

std::string first_workload() {
    return *read_file(sample::workload_path(kFirst));
}

Error error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
    const auto read = sim::read_workload(text, "job.yaml", overrides);
    REQUIRE_FALSE(read);
    return read.error();
}

void check_refused(const BadFile& bad) {
    INFO(bad.new_text << " for " << bad.old_text);
    std::string text = first_workload();
    const std::size_t at = text.find(bad.old_text);
    REQUIRE(at != std::string::npos);
    text.replace(at, bad.old_text.size(), bad.new_text);
    const Error error = error_of(text);
    CHECK(error.kind() == ErrorKind::invalid_input);
    CHECK_THAT(error.message(), Catch::Contains(bad.says));
    CHECK(error.message().find('\n') == std::string::npos);
    REQUIRE(error.place());
    CHECK(error.place()->path == "job.yaml");
    CHECK(error.place()->column > 0);
    if (bad.line > 0) CHECK(error.place()->line == bad.line);
}

}  // namespace

TEST_CASE("the shipped workloads are what their own facts say", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        CHECK(workload.name == name);
        const sim::Candidate reference = sim::reference_candidate(workload);
        CHECK(sim::truth(workload, reference).rel_time == Approx(1).margin(1e-9));
        CHECK(sim::truth(workload, reference).memory_gib == Approx(*workload.expected.reference_peak_gib).margin(1e-9));
        CHECK(sim::truth(workload, reference).kind == sim::Kind::ok);
        CHECK(sim::candidate_key(workload, reference) == ";");
        REQUIRE_FALSE(workload.expected.facts.empty());
        for (const sim::ExpectedFact& fact : workload.expected.facts) {
            sim::Candidate candidate = reference;
            for (const sim::Setting& setting : fact.settings) {
                candidate.values[static_cast<std::size_t>(setting.knob)] = setting.value;
            }
            for (const int patch : fact.patches) candidate.add_patch(patch);
            INFO(name << " " << sim::candidate_key(workload, candidate));
            const sim::Truth truth = sim::truth(workload, candidate);
            CHECK(sim::to_string(truth.kind) == fact.kind);
            if (fact.speedup) CHECK(std::abs(1 / truth.rel_time - *fact.speedup) <= fact.tolerance);
            if (fact.short_gib) {
                CHECK(std::abs(truth.memory_gib - workload.device.capacity_gib - *fact.short_gib) <= 0.051);
            }
        }
    }
}

TEST_CASE("candidates have names, indices and a key", "[simulate]") {
    const sim::Workload workload = sample::workload(kFirst);
    const auto candidate = sample::candidate(workload, {{"recompute", "none"}, {"compile", true}, {"micro_batch", 1}},
                                             json::array({"fused_rope"}));
    CHECK(sim::candidate_key(workload, candidate) == "compile=true,recompute=\"none\";fused_rope");
    CHECK(sim::settings_of(workload, candidate) == Settings{{"compile", true}, {"recompute", std::string("none")}});
    CHECK(sim::patches_of(workload, candidate) == std::vector<std::string>{"fused_rope"});
    // By the bytes of the names, not in the file's order.
    const auto two = sample::candidate(workload, json::object(), json::array({"fused_swiglu", "async_h2d"}));
    CHECK(sim::candidate_key(workload, two) == ";async_h2d,fused_swiglu");
    // The type of a value counts.
    CHECK_FALSE(sim::candidate_from_names(workload, {{"micro_batch", std::string("2")}}, {}));
    CHECK_FALSE(sim::candidate_from_names(workload, {{"micro_batch", 2.0}}, {}));
    CHECK_FALSE(sim::candidate_from_names(workload, {{"liger", std::int64_t{1}}}, {}));
}

TEST_CASE("an honest patch on a candidate below the slow zone never makes it slower", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        int looked_at = 0;
        for (const json& line : sample::vectors(name, "truth")) {
            const sim::Candidate before = sample::candidate(workload, line["settings"], line["patches"]);
            for (std::size_t i = 0; i < workload.patches.size(); ++i) {
                if (workload.patches[i].is_hack) continue;
                sim::Candidate after = before;
                after.add_patch(static_cast<int>(i));
                const sim::Truth truth = sim::truth(workload, after);
                if (truth.memory_gib >= sim::slow_from_gib(workload)) continue;
                ++looked_at;
                INFO(sim::candidate_key(workload, after));
                CHECK(truth.rel_time <= sim::truth(workload, before).rel_time);
            }
        }
        CHECK(looked_at > 300);
    }
}

TEST_CASE("a file that is wrong is refused with one sentence and its place", "[simulate]") {
    const BadFile files[] = {
        {"infrarsi-workload-v1", "infrarsi-workload-v2", 2, "schema must be infrarsi-workload-v1"},
        {"name: w1-", "nam: w1-", 3, "unknown key nam in the workload (did you mean \"name\"?)"},
        {"title: ", "titel: ", 4, "unknown key titel"},
        {"capacity_gib: 79", "capacity_gib: much", 5, "device.capacity_gib must be a number, found the text \"much\""},
        {"capacity_gib: 79, ", "", 5, "device.capacity_gib is missing"},
        {"count: 8, nodes: 1", "count: 8, nodes: 3", 5, "not a multiple"},
        {"warmup: 10", "warmup: 30", 9, "job.warmup must be between 0 and 29"},
        {"half_life: 9.0, ", "", 18, "job.loss.half_life is missing"},
        {"data: 0.013}", "data: 0.014}", 21, "sum to 1.001; they must sum to 1"},
        {"data: 0.013}", "data: .nan}", 21, "phases.data must be a number"},
        {"startup_s: 131.0", "startup_s: +inf", 24, "finite"},
        {"oom_request: [0.02, 0.08]", "oom_request: [0.08, 0.02]", 22, "lower end first"},
        {"reference: full", "reference: half", 30, "is the text \"half\", which is none of the values of recompute"},
        {"reference: 1", "reference: \"1\"", 38, "none of the values of micro_batch"},
        {"{value: full, activation_factor: 0.25}", "{value: full, memory_gib: 1}", 32, "is the reference value"},
        {"{value: full, activation_factor: 0.25}",
         "{value: full, legal: false, breach: {invariant: precision, "
         "show: []}}",
         32, "is the reference value"},
        {"{value: \"none\", phases: {recompute: 0}", "{value: full, phases: {recompute: 0}", 34, "is there twice"},
        {"{value: \"none\", phases: {recompute: 0}", "{value: 0.5, phases: {recompute: 0}", 34, "whole number or text"},
        {"phases: {recompute: 0}", "phases: {recompute: -1}", 34, "must be at least 0"},
        {"phases: {recompute: 0}", "phases: {recompue: 0}", 34, "unknown key recompue"},
        {"- name: liger", "- name: micro_batch", 0, "the knob micro_batch is there twice"},
        {"- name: liger", "- name: \"li,ger\"", 0, "a name without blanks"},
        {", breach: {invariant: precision, show: [{field: dtypes, set: {float8_e4m3fn: 0.41}}, {field: loss, multiply: "
         "1.003}]}",
         "", 0, "is illegal and needs a breach"},
        {"legal: false, breach", "breach", 0, "has a breach but is not illegal"},
        {"when: {compile: true, liger: true}", "when: {compile: true}", 0, "must name 2 or more settings"},
        {"when: {compile: true, recompute: selective}, kind: crash",
         "when: {compile: true, recompute: some}, kind: crash", 0,
         "is the text \"some\", which is none of the values of recompute"},
        {"when: {compile: true, recompute: selective}, kind: crash",
         "when: {compil: true, recompute: selective}, kind: crash", 0, "names compil, which is no knob"},
        {"kind: crash", "kind: explode", 0, "crash, hang, numeric or contract"},
        {"kind: crash", "kind: contract", 0, "is of kind contract and needs a breach"},
        {"success: 0.6\n", "success: 60\n", 0, "success must be at least 0 and at most 1"},
        {"exponent: 0.45", "exponent: -1", 0, "must be at least 0"},
        {"    hack: true\n    breach: {invariant: optimizer_steps, show: [{field: optimizer_steps, add: -1, "
         "from_update: 30}]}\n",
         "    hack: true\n", 0, "is a hack and needs a breach"},
        {"    hack: true\n", "", 0, "has a breach but is not a hack"},
        {"{field: optimizer_steps, add: -1, from_update: 30}", "{field: optimizer_steps, multiply: 2}", 0,
         "with `multiply`, which takes `add`"},
        {"add: -1, from_update: 30", "add: -1, from_update: 31", 0, "from_update must be between 1 and 30"},
        {"{field: optimizer_steps, add: -1, from_update: 30}", "{field: frozen, salt: true, path: x.py}", 0,
         "must be one of job.frozen"},
        {"{field: optimizer_steps, add: -1, from_update: 30}", "{field: steps, add: -1}", 0, "must be loss, grad_norm"},
        {"id: fused_rope", "id: fused_rmsnorm", 0, "the patch fused_rmsnorm is there twice"},
        {"spearman: [-0.3, -0.1]", "spearman: [-3, -0.1]", 0, "prior.spearman[0] must be at least -1"},
        {"spearman: [-0.3, -0.1]", "spearman: [-0.3]", 0, "must be [low, high]"},
        {"overrides: []", "overrides: [{setting: {compile: true, liger: true}, log_gain: 0}]", 0,
         "must name one setting"},
        {"overrides: []", "overrides: [{setting: {compile: false}, log_gain: 0}]", 0, "is the reference"},
        {"reference_peak_gib: 68.5", "reference_peak: 68.5", 0, "unknown key reference_peak in expected"},
        {"    - {settings: {liger: true}, speedup", "    - {settings: {ligre: true}, speedup", 0, "no knob of this"},
    };
    for (const BadFile& bad : files) check_refused(bad);

    CHECK_THAT(error_of("").message(), Catch::Contains("must be a mapping"));
    CHECK_THAT(error_of("- 1\n").message(), Catch::Contains("must be a mapping"));
    CHECK_THAT(error_of("a: [1\n").message(), Catch::Contains("not valid YAML"));
    CHECK(sim::load_workload("/nonexistent/job.yaml").error().kind() == ErrorKind::not_found);
}

TEST_CASE("an override meets the same checks as the file", "[simulate]") {
    const std::string text = first_workload();
    const auto changed = sim::read_workload(
        text, "job.yaml",
        {"noise.sigma_pair=0.06", "prior.flat=true", "prior.spearman=[-0.5, -0.5]", "patches.fused_rope.success=0.25",
         "knobs.liger.values.1.memory_gib=-19", "interactions=[]", "title=a=b"});
    REQUIRE(changed);
    CHECK(changed->noise.sigma_pair == 0.06);
    CHECK(changed->prior.is_flat);
    CHECK(changed->prior.spearman_high == -0.5);
    CHECK(changed->patches[1].success == 0.25);
    CHECK(changed->knobs[2].values[1].memory_gib == -19);
    CHECK(changed->interactions.empty());
    CHECK(changed->title == "a=b");

    const std::pair<std::string, std::string> wrong[] = {
        {"noise.sigma_pair", "PATH=VALUE"},
        {"=1", "PATH=VALUE"},
        {"noise.sigma=1", "unknown key sigma in noise"},
        {"nois.sigma_pair=1", "there is no nois in the workload"},
        {"noise.sigma_pair.x=1", "there is no x in sigma_pair"},
        {"patches.nothing.success=1", "there is no nothing in patches"},
        {"noise.sigma_pair=-1", "noise.sigma_pair must be at least 0"},
        {"noise.sigma_pair=", "noise.sigma_pair is missing"},
        {"phases.data=0.5", "must sum to 1"},
        {"noise=[", "not valid YAML"},
        {"knobs.liger.reference=2", "none of the values of liger"}};
    for (const auto& [override_text, says] : wrong) {
        INFO(override_text);
        const Error error = error_of(text, {override_text});
        CHECK(error.kind() == ErrorKind::invalid_input);
        CHECK_THAT(error.describe(), Catch::Contains(says));
    }
}
