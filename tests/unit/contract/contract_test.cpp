#include "core/contract/contract.h"

#include <nlohmann/json.hpp>

#include "core/base/yaml_node.h"
#include "core/contract/quantities.h"
#include "core/testing/temp_dir.h"

using namespace infrarsi;
namespace fs = std::filesystem;

namespace {

const std::string kHead = "schema: infrarsi-project-v1\nname: job\nlaunch: {command: bash train.sh}\n";

// Every key of DESIGN §5.
const std::string kFull = R"yaml(schema: infrarsi-project-v1
name: qwen-pretrain
launch:
  command: "bash train.sh"
  cwd: .
  env: {OMP_NUM_THREADS: 8, VERSION: 1.10, EMPTY: ""}
  stack: hf
  gpus_per_node: auto
  nodes: 1
  updates: 30
  warmup: 10
  timeout: auto
knobs:
  micro_batch: {flag: --micro-batch-size, values: [1, 2, 4], reference: 1, mechanism: micro_batch}
  grad_accum:  {flag: --grad-accum, values: [4, 8, 16], reference: 16, mechanism: grad_accum}
  compile:     {flag: --compile, values: [false, true], reference: false}
  nccl_ch:     {env: NCCL_MIN_NCHANNELS, values: [null, 16, 32]}
  recompute:   {config: configs/7b.yaml#model.recompute, values: [full, selective, none], reference: full}
constraints: ["micro_batch * grad_accum == 16", "!(compile && recompute == full)"]
scope:
  editable: ["model/**.py", "train.py"]
  frozen:   ["data/**", "eval.py", "loss.py"]
invariants:
  tolerance: 0.03
  eval: {command: python eval.py, metric: acc, tolerance: 0.01}
  resume: {save_at: 15, command: bash resume.sh}
  tests: ["pytest -q tests"]
  precision_menu: [bf16, fp32]
  memory_cap_gib: auto
  required: strict
search:
  budget: {screens: 16, wallclock: 90m, gpu_hours: null, llm_tokens: 1.5M, llm_usd: null, target_speedup: 1.5, target_mfu: 45}
  seed: 7
llm: {backend: claude, model: sonnet, base_url: null, api_key_env: null, context_tokens: 40960, extra_body: {a: {b: false}}, capability: auto}
debate: {enabled: true, second: "deepseek:deepseek-reasoner", verifier: null, verify_rounds: 2}
requirements: {text: ["不能改优化器"], on_unsupported: continue}
experience: off
target: gpu-box
targets:
  gpu-box: {kind: ssh, host: gpu-box, workdir: ~/infrarsi}
  cluster: {kind: slurm, host: login1, partition: h100, gres: "gpu:8", time: "00:30:00", workdir: /scratch/me/infrarsi}
doctor: {on_save: off}
isolation: {sandbox: none, network: none, env_allow: [WANDB_API_KEY, "HF_*"]}
)yaml";

std::string errors_of(const std::string& text) {
    std::string all;
    for (const Error& error : check_contract(text, "p/infrarsi.yaml")) all += error.describe() + "\n";
    return all;
}

Contract good(const std::string& text) {
    INFO(errors_of(text));
    auto contract = parse_contract(text, "/p/infrarsi.yaml");
    REQUIRE(contract);
    return std::move(*contract);
}

}  // namespace

TEST_CASE("a small contract gets every default", "[contract]") {
    const Contract c = good(kHead);
    CHECK(c.file == "/p/infrarsi.yaml");
    CHECK(c.root == "/p");
    CHECK(c.launch.command == "bash train.sh");
    CHECK(c.launch.stack == Stack::auto_);
    CHECK_FALSE(c.launch.gpus_per_node);
    CHECK(c.launch.updates == 30);
    CHECK(c.launch.warmup == 10);
    CHECK_FALSE(c.launch.timeout_s);
    CHECK(c.knobs.empty());
    CHECK(c.invariants.tolerance == 0.03);
    CHECK(c.invariants.strict);
    CHECK(c.budget.screens == 16);
    CHECK(c.llm.backend == "none");
    CHECK(c.experience == "auto");
    CHECK(c.target == "local");
    CHECK(c.doctor_on_save == "quick");
    CHECK(c.isolation.network == "inherit");
    CHECK(good("schema: infrarsi-project-v1\nlaunch:\n  command: |\n    set -e\n    bash train.sh\n").name == "p");
    CHECK(good(kHead + "knobs: {}\n").knobs.empty());
    CHECK(good(kHead + "knobs:\nconstraints:\nsearch:\n  budget:\n").knobs.empty());
    CHECK(good("\xEF\xBB\xBF" + kHead).name == "job");
}

TEST_CASE("every key of the schema is read", "[contract]") {
    const Contract c = good(kFull);
    CHECK(c.launch.env ==
          std::map<std::string, std::string>{{"OMP_NUM_THREADS", "8"}, {"VERSION", "1.10"}, {"EMPTY", ""}});
    CHECK(c.launch.stack == Stack::hf);
    REQUIRE(c.knobs.size() == 5);
    CHECK(c.knobs[0].name == "micro_batch");
    CHECK(c.knobs[0].spelling == "--micro-batch-size");
    CHECK(c.knobs[0].form == FlagForm::value);
    CHECK(c.knobs[0].line == 14);
    CHECK(c.knob("compile")->form == FlagForm::switch_);
    CHECK(c.knob("nccl_ch")->kind == KnobKind::env);
    CHECK(is_null(c.knob("nccl_ch")->reference));
    CHECK(c.knob("recompute")->kind == KnobKind::config);
    CHECK(c.knob("recompute")->reference == Value{std::string("full")});
    CHECK(c.knob("none") == nullptr);
    CHECK(c.constraints.size() == 2);
    CHECK(c.editable == std::vector<std::string>{"model/**.py", "train.py"});
    REQUIRE(c.invariants.eval);
    CHECK(c.invariants.eval->tolerance == 0.01);
    CHECK(c.invariants.resume->save_at == 15);
    CHECK(c.invariants.resume->command == "bash resume.sh");
    CHECK(c.invariants.precision_menu == std::vector<std::string>{"bf16", "fp32"});
    CHECK(c.budget.wallclock_s == 5400);
    CHECK(c.budget.llm_tokens == 1'500'000);
    CHECK(c.budget.target_speedup == 1.5);
    CHECK(c.budget.target_mfu == 0.45);
    CHECK(c.seed == 7);
    CHECK(c.llm.backend == "claude-cli");
    CHECK(c.llm.extra_body == R"({"a":{"b":false}})");
    CHECK(c.debate_second == "deepseek:deepseek-reasoner");
    CHECK(c.requirements == std::vector<std::string>{"不能改优化器"});
    CHECK(c.on_unsupported == "continue");
    CHECK(c.experience == "off");
    REQUIRE(c.targets.size() == 2);
    CHECK(c.targets[1].fields.at("time") == "00:30:00");
    CHECK(c.doctor_on_save == "off");
    CHECK(c.isolation.sandbox == Sandbox::none);
    CHECK(c.isolation.env_allow == std::vector<std::string>{"WANDB_API_KEY", "HF_*"});
}

TEST_CASE("screens are unlimited only where another limit is given", "[contract]") {
    CHECK(good(kHead + "search: {budget: {wallclock: 2}}\n").budget.wallclock_s == 7200);
    CHECK_FALSE(good(kHead + "search: {budget: {wallclock: 2}}\n").budget.screens);
    CHECK(good(kHead + "search: {budget: {target_speedup: 2}}\n").budget.screens == 16);
}

TEST_CASE("settings are differences from the reference", "[contract]") {
    const Contract c = good(kFull);
    const Settings changes{{"compile", true}, {"micro_batch", 1.0}, {"nccl_ch", Value{}}};
    CHECK(c.differences(changes) == Settings{{"compile", true}});
    const Settings all = c.complete({{"compile", true}});
    CHECK(all.size() == 5);
    CHECK(all.at("compile") == Value{true});
    CHECK(all.at("grad_accum") == Value{std::int64_t{16}});
    CHECK(c.differences(c.reference_settings()).empty());
}

namespace {

struct Wrong {
    std::string text;
    int line, column;  // column 0: wherever the YAML library says
    std::string says;
};

void check_wrong(const std::vector<Wrong>& cases) {
    for (const Wrong& c : cases) {
        CAPTURE(c.text);
        const auto errors = check_contract(c.text, "infrarsi.yaml");
        REQUIRE_FALSE(errors.empty());
        const Error& error = errors.front();
        INFO(error.describe());
        CHECK(error.kind() == ErrorKind::invalid_input);
        REQUIRE(error.place());
        CHECK(error.place()->path == "infrarsi.yaml");
        CHECK(error.place()->line == c.line);
        if (c.column > 0) CHECK(error.place()->column == c.column);
        CHECK_THAT(error.message(), Catch::Contains(c.says));
        CHECK_FALSE(parse_contract(c.text, "infrarsi.yaml"));
    }
}

}  // namespace

TEST_CASE("text that is no YAML is refused at its place", "[contract]") {
    check_wrong({
        {"", 1, 1, "the file is empty"},
        {"# only a comment\n", 1, 1, "the file is empty"},
        {"name: a\n\xff\xfe", 2, 1, "UTF-8"},
        {"name: caf\xe9\n", 1, 10, "save the file as UTF-8"},
        {"schema: x\nlaunch:\n\tcommand: y\n", 3, 1, "tab"},
        {"launch:\n  \tcommand: y\n  cwd: .\n", 2, 0, "tab"},
        {std::string("name: a\0b\n", 10), 1, 8, "control character"},
        {"name: a\x04\nlaunch: {}\n", 1, 8, "control character 0x04"},
        {"name: [a\n", 2, 0, "not valid YAML"},
        {"name: \"a\n", 1, 7, "a quote opens here"},
        {"name: 'it''s\n", 1, 7, "a quote opens here"},
        {"name: a: b\n", 1, 0, "put quotes around"},
        {"name: a\n  cwd: b\n", 2, 0, "not valid YAML"},
        {"launch:\n  command: a\n cwd: b\n", 3, 0, "check the indentation"},
        {"a: *nowhere\n", 1, 0, "not valid YAML"},
        {"a: &x [*x]\n", 1, 0, "alias"},
        {"? [a, b]\n: c\n", 1, 3, "key must be plain text"},
        {"name: !!python/object:os.system x\n", 1, 7, "tag"},
        {"name: !mine x\n", 1, 7, "means nothing here"},
        {"name: a\n---\nname: b\n", 2, 0, "second document"},
        {"- a\n- b\n", 1, 1, "infrarsi.yaml must be a mapping, found a list"},
        {"just words\n", 1, 1, "must be a mapping, found the text"},
        {"\xFE\xFFn", 1, 1, "UTF-8"},
    });
    const std::string huge = kHead + "#" + std::string(2u << 20, 'x');
    const auto errors = check_contract(huge, "infrarsi.yaml");
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0].message(), Catch::Contains("1024 KiB"));
}

TEST_CASE("aliases cannot blow a contract up", "[contract]") {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i) {
        text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
    }
    const auto errors = check_contract(text, "infrarsi.yaml");
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0].message(), Catch::Contains("aliases blow"));
    std::string deep = "a0: &a0 [x]\n";
    for (int i = 1; i < 5000; ++i) deep += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
    CHECK_THAT(check_contract(deep, "infrarsi.yaml")[0].message(), Catch::Contains("nest deeper"));
    CHECK_THAT(check_contract("a: " + std::string(20'000, '['), "infrarsi.yaml")[0].message(),
               Catch::Contains("not valid YAML"));
}

TEST_CASE("what the schema does not allow is refused with the way out", "[contract]") {
    const std::string knobs = kHead + "knobs:\n";  // a knob below stands on line 5
    check_wrong({
        {"launch: {command: a}\n", 1, 1, "schema is missing"},
        {"schema: infrarsi-project-v9\nlaunch: {command: a}\n", 1, 9, "infrarsi-project-v1"},
        {"schema: infrarsi-project-v1\nname: a\n", 1, 1, "launch.command is missing"},
        {"schema: infrarsi-project-v1\nlaunch: {command: \"  \"}\n", 2, 19, "is empty"},
        {"schema: infrarsi-project-v1\nlaunch: {command: [a]}\n", 2, 19, "must be text, found a list"},
        {"schema: infrarsi-project-v1\nlaunch: bash train.sh\n", 2, 9, "launch must be a mapping, found the text"},
        {kHead + "name: twice\n", 4, 1, "stands twice in infrarsi.yaml (first on line 2)"},
        {kHead + "knob: {}\n", 4, 1, "did you mean \"knobs\"?"},
        {kHead + "zzz: 1\n", 4, 1, "known here: schema, name"},
        {kHead + "<<: {a: 1}\n", 4, 1, "merge keys"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, tineout: 90m}\n", 2, 22, "did you mean \"timeout\"?"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, timeout: 90}\n", 2, 31, "has no unit"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, timeout: soon}\n", 2, 31, "3600s, 90m, 2h"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, updates: 1.5}\n", 2, 31,
         "must be a whole number, found the number 1.5"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, updates: 8}\n", 2, 31, "leave 0 to measure"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, cwd: ../other}\n", 2, 27, "inside the project"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, stack: megatrn}\n", 2, 29, "did you mean \"megatron\"?"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, env: {A-B: 1}}\n", 2, 28, "no name of a variable"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, env: {A: }}\n", 2, 28, "has no value"},
        {"schema: infrarsi-project-v1\nname: yes\nlaunch: {command: a}\nname: b\n", 4, 1, "twice"},
        {knobs + "  a: {values: [1], reference: 1}\n", 5, 3, "exactly one of flag, env and config, found none"},
        {knobs + "  a: {flag: --a, env: A, values: [1], reference: 1}\n", 5, 3, "found several"},
        {knobs + "  a: {flag: --a}\n", 5, 3, "has no values"},
        {knobs + "  a: {flag: --a, values: []}\n", 5, 26, "values is empty"},
        {knobs + "  a: {flag: --a, values: 3, reference: 3}\n", 5, 26, "must be a list, found the number 3"},
        {knobs + "  a: {flag: --a, values: [1, [2]], reference: 1}\n", 5, 30, "must be a single value"},
        {knobs + "  a: {flag: --a, values: [1, 1.0], reference: 1}\n", 5, 30, "stands there already as 1"},
        {knobs + "  a: {flag: --a, values: [1, 2]}\n", 5, 3, "reference: one of 1, 2"},
        {knobs + "  a: {flag: --a, values: [1]}\n", 5, 3, "reference: 1"},
        {knobs + "  a: {flag: --a, values: [1, 2], reference: 3}\n", 5, 45, "3 is not among the values 1, 2"},
        {knobs + "  a: {flag: --a, values: [1, 2], reference: null}\n", 5, 45, "null is not among"},
        {knobs + "  a: {flag: a, values: [1], reference: 1}\n", 5, 13, "must be a flag alone"},
        {knobs + "  a: {flag: \"--a=1\", values: [1], reference: 1}\n", 5, 13, "must be a flag alone"},
        {knobs + "  a: {env: A B, values: [1], reference: 1}\n", 5, 12, "name of a variable"},
        {knobs + "  a: {config: c.yaml, values: [1], reference: 1}\n", 5, 15, "file#key"},
        {knobs + "  a: {config: \"../c.yaml#k\", values: [1], reference: 1}\n", 5, 15, "inside the project"},
        {knobs + "  a: {flag: --a, values: [1, 2], reference: 1, form: switch}\n", 5, 54,
         "can only be true, false or null"},
        {knobs + "  a: {env: A, values: [1], reference: 1, form: equals}\n", 5, 48, "is for flags"},
        {knobs + "  a: {flag: --a, values: [1], reference: 1, mechanism: Big Batch}\n", 5, 56, "mechanism id"},
        {knobs + "  a-b: {flag: --a, values: [1], reference: 1}\n", 5, 3, "letters, digits and _"},
        {knobs + "  implies: {flag: --a, values: [1], reference: 1}\n", 5, 3, "something else in constraints"},
        {knobs + "  a: {flag: --a, values: [1], reference: 1}\n  b: {flag: --a, values: [1], reference: 1}\n", 6, 3,
         "are both --a"},
        {knobs + "  a: {flag: --a, values: [1], reference: 1, mechanism: micro_batch}\n  b: {flag: --b, values: [1], "
                 "reference: 1, "
                 "mechanism: batch.micro_batch}\n",
         6, 3, "count twice"},
        {knobs + "  a: 4\n", 5, 6, "must be a mapping"},
        {knobs + "  a:\n", 5, 3, "says nothing"},
        {"schema: infrarsi-project-v1\nlaunch: {command: a, env: {N: 4}}\nknobs: {n: {env: N, values: [null, 4]}}\n", 3,
         12, "make them agree"},
        {kHead + "scope: {frozen: [/etc/passwd]}\n", 4, 18, "is absolute"},
        {kHead + "scope: {frozen: [../x]}\n", 4, 18, "climbs out"},
        {kHead + "scope: {frozen: [\"data/\"]}\n", 4, 18, "data/**"},
        {kHead + "scope: {frozen: data}\n", 4, 17, "must be a list"},
        {kHead + "invariants: {tolerance: 0}\n", 4, 25, "more than 0 and at most 1, found 0"},
        {kHead + "invariants: {tolerance: 3%}\n", 4, 25, "must be a number"},
        {kHead + "invariants: {resume: {save_at: 30}}\n", 4, 32, "between 1 and 29"},
        {kHead + "invariants: {resume: {}}\n", 4, 22, "no save_at"},
        {kHead + "invariants: {resume: {save_at: 3, command: ''}}\n", 4, 44, "command is empty"},
        // The cause before what follows from it (updates: 8 with the default warmup), though that stands earlier.
        {"schema: infrarsi-project-v1\nlaunch: {command: a, updates: 8, warmupp: 3}\n", 2, 34,
         "did you mean \"warmup\"?"},
        {kHead + "invariants: {eval: {metric: a}}\n", 4, 20, "eval.command is missing"},
        {kHead + "invariants: {precision_menu: [bf61]}\n", 4, 31, "did you mean \"bf16\"?"},
        {kHead + "invariants: {required: lax}\n", 4, 24, "strict or a list"},
        {kHead + "invariants: {required: [same_dat]}\n", 4, 25, "did you mean \"same_data\"?"},
        {kHead + "invariants: {memory_cap_gib: -1}\n", 4, 30, "more than 0"},
        {kHead + "search: {budget: {screens: 0}}\n", 4, 28, "between 1"},
        {kHead + "search: {budget: {target_speedup: 1}}\n", 4, 35, "more than 1"},
        {kHead + "search: {budget: {target_mfu: 120}}\n", 4, 31, "no share"},
        {kHead + "search: {budget: {llm_tokens: 1.5}}\n", 4, 31, "no count"},
        {kHead + "search: {seed: -1}\n", 4, 16, "between 0"},
        {kHead + "llm: {backend: cluade}\n", 4, 16, "there is no backend cluade"},
        {kHead + "llm: {backend: \"claude:opus\"}\n", 4, 16, "write backend: claude-cli and model: opus"},
        {kHead + "llm: {api_key_env: sk-secret-1}\n", 4, 20, "not the key itself"},
        {kHead + "llm: {base_url: example.org}\n", 4, 17, "http://"},
        {kHead + "llm: {capability: 2}\n", 4, 19, "at most 1"},
        {kHead + "llm: {extra_body: [1]}\n", 4, 19, "must be a mapping"},
        {kHead + "debate: {enabled: true}\n", 4, 9, "second model"},
        {kHead + "debate: {enabled: on}\n", 4, 19, "true or false"},
        {kHead + "requirements: {text: be fast}\n", 4, 22, "must be a list"},
        {kHead + "requirements: {text: [\" \"]}\n", 4, 23, "is empty"},
        {kHead + "experience: true\n", 4, 13, "must be text, found true"},
        {kHead + "targets: {a: {host: b}}\n", 4, 11, "has no kind"},
        {kHead + "targets: {a: {kind: shh, host: b}}\n", 4, 21, "did you mean \"ssh\"?"},
        {kHead + "targets: {a: {kind: ssh, hots: b, host: b}}\n", 4, 26, "did you mean \"host\"?"},
        {kHead + "targets: {a: {kind: ssh}}\n", 4, 11, "has no host"},
        {kHead + "doctor: {on_save: true}\n", 4, 19, "off, quick or full"},
        {kHead + "isolation: {network: host}\n", 4, 22, "inherit or none"},
        {kHead + "isolation: {env_allow: [\"*\"]}\n", 4, 25, "name of a variable"},
    });
    CHECK_THAT(errors_of(kHead + "llm: {api_key_env: sk-secret-1}\n"), !Catch::Contains("secret"));
}

TEST_CASE("constraints are held against the knobs", "[contract]") {
    const std::string knobs = kHead +
                              "knobs:\n"
                              "  mb: {flag: --mb, values: [1, 2, 4], reference: 1}\n"
                              "  ga: {flag: --ga, values: [4, 8, 16], reference: 16}\n"
                              "  rc: {flag: --rc, values: [full, none], reference: full}\n";
    const auto with = [&](const std::string& list) { return knobs + "constraints: " + list + "\n"; };
    CHECK(errors_of(with("[mb * ga == 16, rc == full implies mb <= 4, \"rc != 'none'\"]")).empty());
    check_wrong({
        {with("[mb * ag == 16]"), 8, 20, "there is no knob ag (did you mean \"ga\"?)"},
        {with("[\"mb * ag == 16\"]"), 8, 21, "there is no knob ag"},
        {with("[mb * ga = 16]"), 8, 23, "write == to compare"},
        {with("[mb ==]"), 8, 20, "it ends where a value is expected"},
        {with("[rc == ful]"), 8, 21, "neither a knob nor a value of rc (full, none) (did you mean \"full\"?)"},
        {with("[mb * ga == 17]"), 8, 15, "no combination of the knobs' values meets \"mb * ga == 17\""},
        {with("[mb == 2, mb == 4]"), 8, 15, "no combination"},
        {with("[mb == 2]"), 8, 15, "the reference itself breaks \"mb == 2\" (mb=1)"},
        {with("[rc > 3]"), 8, 15, "has no order"},
        {with("[mb / 0 == 1]"), 8, 18, "division by zero"},
        {with("mb == 1"), 8, 14, "must be a list"},
        {with("[5]"), 8, 15, "must be text"},
    });
}

TEST_CASE("all problems are found at once, by place", "[contract]") {
    const std::string text =
        "schema: infrarsi-project-v1\nnmae: x\nlaunch: {command: 5, updates: no}\nsearch: {seed: x}\n";
    const auto errors = check_contract(text, "infrarsi.yaml");
    REQUIRE(errors.size() == 4);
    CHECK(errors[0].place() == Place{"infrarsi.yaml", 2, 1});
    CHECK(errors[1].place() == Place{"infrarsi.yaml", 3, 19});
    CHECK(errors[2].place() == Place{"infrarsi.yaml", 3, 31});
    CHECK(errors[3].place() == Place{"infrarsi.yaml", 4, 16});
    const auto contract = parse_contract(text, "infrarsi.yaml");
    REQUIRE_FALSE(contract);
    CHECK(contract.error().place() == errors[0].place());
    CHECK_THAT(contract.error().message(), Catch::EndsWith("(and 3 more problems)"));
}

TEST_CASE("contracts are read from files by absolute path", "[contract]") {
    const TempDir folder({{"sub/infrarsi.yaml", kHead}});
    const auto contract = read_contract(folder.path() / "sub" / ".." / "sub" / "infrarsi.yaml");
    REQUIRE(contract);
    CHECK(contract->root == folder.path() / "sub");
    CHECK(contract->file == folder.path() / "sub" / "infrarsi.yaml");
    const auto missing = read_contract(folder.path() / "infrarsi.yaml");
    REQUIRE_FALSE(missing);
    CHECK(missing.error().kind() == ErrorKind::not_found);
}

TEST_CASE("the digest follows the meaning only", "[contract]") {
    const std::string digest = contract_digest(good(kFull));
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = kFull;
        REQUIRE(text.find(from) != std::string::npos);
        text.replace(text.find(from), from.size(), to);
        return contract_digest(good(text)) != digest;
    };
    CHECK_FALSE(changed("schema:", "# a comment\nschema:"));
    CHECK_FALSE(changed("  cwd: .\n", ""));
    CHECK_FALSE(changed("values: [1, 2, 4]", "values: [4, 1, 2]"));
    CHECK_FALSE(changed("\"eval.py\", \"loss.py\"", "\"loss.py\", \"eval.py\""));
    CHECK_FALSE(changed("screens: 16", "screens: 32"));
    CHECK_FALSE(changed("seed: 7", "seed: 8"));
    std::string swapped = kFull;
    const std::string line = "  nodes: 1\n";
    swapped.erase(swapped.find(line), line.size());
    swapped.insert(swapped.find("  stack: hf"), line);
    CHECK(contract_digest(good(swapped)) == digest);

    CHECK(changed("tolerance: 0.03", "tolerance: 0.04"));
    CHECK(changed("bash train.sh", "bash other.sh"));
    CHECK(changed("values: [1, 2, 4]", "values: [1, 2]"));
    CHECK(changed("OMP_NUM_THREADS: 8", "OMP_NUM_THREADS: 9"));
    CHECK(changed("\"data/**\", ", ""));
    CHECK(changed("reference: full", "reference: selective"));
    CHECK(changed("required: strict", "required: [completes]"));
    CHECK(changed("network: none", "network: inherit"));
}

TEST_CASE("amounts are read as people write them", "[contract]") {
    const auto hours = [](std::string_view text) { return parse_duration_s(text, BareNumber::hours).value_or(-1); };
    CHECK(hours("3600s") == 3600);
    CHECK(hours("90m") == 5400);
    CHECK(hours("2h") == 7200);
    CHECK(hours("1h30m") == 5400);
    CHECK(hours("2.5") == 9000);
    CHECK(hours("1d") == 86400);
    for (const auto* bad : {"", "m", "-1h", "1h 30", "1m1h", "0s", "1x", "nan", "1e3s", "inf"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_duration_s(bad, BareNumber::hours));
    }
    CHECK_FALSE(parse_duration_s("90", BareNumber::refused));
    CHECK(parse_count("500k").value_or(0) == 500'000);
    CHECK(parse_count("1.5M").value_or(0) == 1'500'000);
    CHECK(parse_count("0.1k").value_or(0) == 100);
    CHECK(parse_count("12").value_or(0) == 12);
    for (const auto* bad : {"", "0", "-1", "1.5", "5q", "k", "1e99", "0.0001k"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_count(bad));
    }
    CHECK(parse_share("0.45").value_or(0) == 0.45);
    CHECK(parse_share("45").value_or(0) == 0.45);
    CHECK(parse_share("45%").value_or(0) == 0.45);
    CHECK(parse_share("1").value_or(0) == 1.0);
    CHECK_FALSE(parse_share("0"));
    CHECK_FALSE(parse_share("101"));
}

TEST_CASE("cut and scrambled contracts never crash the reader", "[contract]") {
    for (std::size_t length = 0; length < kFull.size(); length += 3) {
        static_cast<void>(check_contract(std::string_view(kFull).substr(0, length), "infrarsi.yaml"));
    }
    std::uint64_t state = 12345;
    for (int round = 0; round < 300; ++round) {
        std::string text = kFull;
        for (int i = 0; i < 5; ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            text[(state >> 33) % text.size()] = "{}[]:,#&*!|>'\"-\n \t%@`0a"[(state >> 20) % 24];
        }
        for (const Error& error : check_contract(text, "infrarsi.yaml")) REQUIRE(error.place());
    }
    SUCCEED();
}
