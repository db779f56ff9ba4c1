#include "core/contract/write_contract.h"

#include <nlohmann/json.hpp>

using namespace infrarsi;

namespace {

Contract read_back(const std::string& text) {
    const auto contract = parse_contract(text, "/p/infrarsi.yaml");
    INFO(text);
    INFO((contract ? "" : contract.error().describe()));
    REQUIRE(contract);
    return *contract;
}

Contract base() {
    Contract contract;
    contract.root = "/p";
    contract.file = "/p/infrarsi.yaml";
    contract.name = "job";
    contract.launch.command = "bash train.sh";
    contract.budget.screens = 16;
    return contract;
}

Knob knob(const std::string& name, KnobKind kind, const std::string& spelling, std::vector<Value> values) {
    Knob result;
    result.name = name;
    result.kind = kind;
    result.spelling = spelling;
    result.reference = values.front();
    result.values = std::move(values);
    return result;
}

Contract rich() {
    Contract c = base();
    c.name = "ümläut: \"job\"";
    c.launch.command = "torchrun --nproc_per_node 8 train.py \\\n  --data '/x y' # not a comment";
    c.launch.cwd = "sub dir";
    c.launch.env = {{"A", "1.10"}, {"B", ""}, {"C", "on"}};
    c.launch.stack = Stack::megatron;
    c.launch.gpus_per_node = 8;
    c.launch.nodes = 2;
    c.launch.updates = 40;
    c.launch.warmup = 5;
    c.launch.timeout_s = 1234.5;
    c.knobs = {knob("micro", KnobKind::flag, "--micro-batch-size", {Value{std::int64_t{1}}, Value{std::int64_t{2}}}),
               knob("compile", KnobKind::flag, "--compile", {Value{false}, Value{true}}),
               knob("neg", KnobKind::flag, "--x", {Value{}, Value{false}, Value{true}}),
               knob("eq", KnobKind::flag, "-O", {Value{std::string("on")}, Value{std::string("1")}, Value{0.5}}),
               knob("ch", KnobKind::env, "NCCL_MIN_NCHANNELS", {Value{}, Value{std::int64_t{16}}}),
               knob("rc", KnobKind::config, "configs/7b.yaml#model.recompute",
                    {Value{std::string("full")}, Value{std::string("none")}})};
    c.knobs[0].mechanism = "batch.micro_batch";
    c.knobs[1].form = FlagForm::switch_;
    c.knobs[2].form = FlagForm::negatable;
    c.knobs[3].form = FlagForm::equals;
    c.constraints = {"micro <= 2", "!(compile && rc == \"none\")"};
    c.editable = {"model/**.py", "a b.py"};
    c.frozen = {"data/**", "[x]{a,b}.py"};
    c.invariants.tolerance = 0.01;
    c.invariants.eval = EvalCheck{"python eval.py: now", "acc", 0.02};
    c.invariants.resume = ResumeCheck{15, "bash go.sh: on"};
    c.invariants.tests = {"pytest -q", "make check"};
    c.invariants.precision_menu = {"bf16", "fp32"};
    c.invariants.memory_cap_gib = 79.5;
    c.invariants.strict = false;
    c.invariants.required = {"completes", "same_data"};
    c.budget = {std::nullopt, 5400, 12.5, 500'000, 10, 1.8, 0.45};
    c.seed = 42;
    c.llm = {"vllm", "Qwen3-30B-A3B", "http://10.0.0.5:8000/v1", "KEY", 40960, R"({"a":{"b":[1,false,"x: y"]}})", 0.3};
    c.debate_enabled = true;
    c.debate_second = "claude-cli:opus";
    c.debate_verifier = "none";
    c.debate_verify_rounds = 1;
    c.requirements = {"不能改优化器", "keep: it"};
    c.on_unsupported = "continue";
    c.experience = "h20-*,h200-*";
    c.target = "cluster";
    c.targets = {{"cluster", "slurm", {{"time", "00:30:00"}, {"gres", "gpu:8"}}},
                 {"box", "ssh", {{"host", "gpu-box"}}}};
    c.doctor_on_save = "off";
    c.isolation = {Sandbox::none, "none", {"HF_*", "WANDB_API_KEY"}};
    return c;
}

}  // namespace

TEST_CASE("a written contract reads back as it was", "[contract]") {
    ContractComments comments;
    comments.header = "Drafted by init.\n\nSecond line: with # and \"quotes\".";
    comments.knobs = {{"micro", "seen in train.sh, line 3"}, {"ch", "two\nlines"}};
    comments.scope = {{"data/**", "the loader\nand its data"}, {"model/**.py", "imported by train.py"}};
    comments.entries = {{"launch.command", "as in train.sh"}, {"invariants.tolerance", "default"}};
    for (const Contract& contract : {base(), rich()}) {
        const Contract back = read_back(write_contract_yaml(contract, comments));
        CHECK(contract_json(back).dump(1) == contract_json(contract).dump(1));
        CHECK(contract_digest(back) == contract_digest(contract));
        CHECK(back.file == contract.file);
        REQUIRE(back.knobs.size() == contract.knobs.size());
        for (std::size_t i = 0; i < back.knobs.size(); ++i) {
            CHECK(back.knobs[i].name == contract.knobs[i].name);
            CHECK(back.knobs[i].values == contract.knobs[i].values);
            CHECK(back.knobs[i].form == contract.knobs[i].form);
        }
        // Writing what was read gives the same text: nothing creeps.
        CHECK(write_contract_yaml(back, comments) == write_contract_yaml(contract, comments));
    }
}

TEST_CASE("a written contract carries its reasons", "[contract]") {
    ContractComments comments;
    comments.header = "Drafted.";
    comments.knobs = {{"micro", "seen in train.sh"}};
    comments.scope = {{"data/**", "the loader"}};
    const std::string text = write_contract_yaml(rich(), comments);
    CHECK_THAT(text, Catch::StartsWith("# Drafted.\n\nschema: infrarsi-project-v1\n"));
    CHECK_THAT(text, Catch::Contains(
                         "  # seen in train.sh\n  micro: {flag: \"--micro-batch-size\", values: [1, 2], reference: 1, "
                         "mechanism: batch.micro_batch}\n"));
    CHECK_THAT(text, Catch::Contains("    - \"data/**\"  # the loader\n"));
    CHECK_THAT(text, Catch::Contains("timeout: 1234.5s\n"));
    CHECK_THAT(text, Catch::Contains("wallclock: 90m\n"));
    CHECK_THAT(write_contract_yaml(base(), {}), Catch::Contains("knobs: {}\n"));
}
