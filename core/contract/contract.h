#pragma once
// The contract: what a job is, what may change, and what must stay the same. It is `infrarsi.yaml` as values (DESIGN
// §5, paper §3.1); every default of the file is filled in here, so that readers never ask whether a key was there.

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"

namespace infrarsi {

// Where a knob takes effect.
enum class KnobKind { flag, env, config };

// How a flag is written on the command line.
//   value:     --name V        switch_: --name when true, absent when false
//   equals:    --name=V        negatable: --name when true, --no-name when false
enum class FlagForm { value, equals, switch_, negatable };

struct Knob {
    std::string name;  // the key in `knobs`
    KnobKind kind = KnobKind::flag;
    std::string spelling;  // "--micro-batch-size", "NCCL_MIN_NCHANNELS", or "configs/7b.yaml#model.recompute"
    FlagForm form = FlagForm::value;  // of a flag
    std::vector<Value> values;        // legal values, the reference among them
    Value reference;                  // what the job uses today; null: not set
    std::string mechanism;            // canonical mechanism id, or empty
    int line = 0;                     // in infrarsi.yaml, 1-based
};

enum class Stack { auto_, megatron, torchtitan, deepspeed, hf, ddp };

struct Launch {
    std::string command;    // run by `bash -c` in cwd
    std::string cwd = ".";  // relative to the project root
    std::map<std::string, std::string> env;
    Stack stack = Stack::auto_;
    std::optional<int> gpus_per_node;  // nothing: auto
    int nodes = 1;
    int updates = 30;
    int warmup = 10;
    std::optional<double> timeout_s;  // nothing: auto, from the reference
};

struct EvalCheck {
    std::string command;
    std::string metric;
    double tolerance = 0.03;
};

struct ResumeCheck {
    int save_at = 0;      // the update after which the job itself writes a checkpoint
    std::string command;  // resumes from it, in the trial's tree; empty: the launch command, run again
};

struct InvariantRules {
    double tolerance = 0.03;  // relative window-mean loss deviation
    std::optional<EvalCheck> eval;
    std::optional<ResumeCheck> resume;
    std::vector<std::string> tests;
    std::vector<std::string> precision_menu;  // dtypes by short name: fp32, bf16, fp16, fp8; empty: the reference's own
    std::optional<double> memory_cap_gib;     // GiB per device; nothing: auto
    bool strict = true;                       // an unchecked always-on invariant rejects
    std::vector<std::string> required;        // when not strict: the invariants that must be checked
};

struct Budget {
    std::optional<int> screens;  // full training runs; 16 when nothing else limits
    std::optional<double> wallclock_s;
    std::optional<double> gpu_hours;
    std::optional<std::int64_t> llm_tokens;
    std::optional<double> llm_usd;
    std::optional<double> target_speedup;  // > 1
    std::optional<double> target_mfu;      // 0 … 1
};

struct LlmChoice {
    std::string backend = "none";
    std::string model, base_url, api_key_env;
    std::optional<int> context_tokens;
    std::string extra_body = "{}";     // a JSON object in canonical form, sent along with each request
    std::optional<double> capability;  // 0 … 1; nothing: from the model's name
};

struct Target {
    std::string name;
    std::string kind;                           // local | ssh | slurm | simulate
    std::map<std::string, std::string> fields;  // host, workdir, partition, …
};

enum class Sandbox { auto_, bwrap, none };

struct Isolation {
    Sandbox sandbox = Sandbox::auto_;
    std::string network = "inherit";     // inherit | none
    std::vector<std::string> env_allow;  // names (or NAME_*) let through to a trial beside the standard list
};

struct Contract {
    std::string name;
    std::filesystem::path root;  // the project's folder (that of infrarsi.yaml), absolute
    std::filesystem::path file;  // infrarsi.yaml, absolute
    Launch launch;
    std::vector<Knob> knobs;               // in the file's order
    std::vector<std::string> constraints;  // as written
    std::vector<std::string> editable;     // globs, relative to root
    std::vector<std::string> frozen;
    InvariantRules invariants;
    Budget budget;
    std::uint64_t seed = 0;
    LlmChoice llm;
    bool debate_enabled = false;
    std::string debate_second, debate_verifier;  // backend[:model]; empty: none, and the model that did not write it
    int debate_verify_rounds = 2;
    std::vector<std::string> requirements;
    std::string on_unsupported = "stop";  // stop | continue: what a requirement that no field can enforce does
    std::string experience = "auto";      // auto | off | pack-id patterns with commas between
    std::string target = "local";
    std::vector<Target> targets;
    std::string doctor_on_save = "quick";
    Isolation isolation;

    [[nodiscard]] const Knob* knob(const std::string& name) const;
    // Every knob at its reference value.
    [[nodiscard]] Settings reference_settings() const;
    // `changes` over the reference, only what differs from it.
    [[nodiscard]] Settings differences(const Settings& changes) const;
    // Every knob: `changes` where given, else the reference.
    [[nodiscard]] Settings complete(const Settings& changes) const;
};

// Reads and validates infrarsi.yaml; root and file become absolute. Errors are invalid_input with file, line, column
// and the way out: bad YAML, duplicate and unknown keys (with the nearest known one), wrong types, values out of range,
// a reference that is not among the values, two knobs of one spelling, constraints that name no knob, that no
// combination of values can meet or that the reference itself breaks, globs that leave the project. When there is more
// than one problem the first is returned and the sentence counts the others. not_found and io of the file itself.
[[nodiscard]] Expected<Contract> read_contract(const std::filesystem::path& file);
[[nodiscard]] Expected<Contract> parse_contract(std::string_view text, const std::filesystem::path& file);

// All problems at once, for an editor; empty when the contract is fine.
[[nodiscard]] std::vector<Error> check_contract(std::string_view text, const std::filesystem::path& file);

// Everything in the file as JSON, defaults filled in: sets sorted, root, file and line numbers left out.
[[nodiscard]] nlohmann::json contract_json(const Contract& contract);

// SHA-256 over what a measurement or a verdict can depend on: launch, knobs, constraints, scope, invariants,
// requirements and isolation. Not over comments, the order of keys, knobs, values and globs, nor over what only steers
// a search (name, budget, seed, llm, debate, experience, target, doctor).
[[nodiscard]] std::string contract_digest(const Contract& contract);

[[nodiscard]] std::string_view to_string(Sandbox sandbox);
[[nodiscard]] std::string_view to_string(Stack stack);
[[nodiscard]] std::string_view to_string(KnobKind kind);
[[nodiscard]] std::string_view to_string(FlagForm form);

}  // namespace infrarsi
