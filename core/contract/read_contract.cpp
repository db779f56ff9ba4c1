#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/yaml_node.h"
#include "core/contract/constraint.h"
#include "core/contract/contract.h"
#include "core/contract/read_knobs.h"
#include "core/contract/scope.h"
#include "core/contract/yaml_reader.h"
#include "core/text/nearest.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSchema = "infrarsi-project-v1";
constexpr std::size_t kLargestFile = 1u << 20;
constexpr std::int64_t kMany = 1'000'000;

const std::vector<std::string> kInvariants{"completes",
                                           "no_errors",
                                           "memory_cap",
                                           "same_workload",
                                           "same_data",
                                           "same_model",
                                           "frozen_files",
                                           "optimizer_steps",
                                           "precision",
                                           "eval_matches",
                                           "loss_within_tolerance",
                                           "grad_norm_within_tol",
                                           "timing_consistent",
                                           "speed_reproduces",
                                           "resume_continues",
                                           "user_tests"};
const std::vector<std::string> kBackends{"claude-cli", "codex-cli",     "deepseek", "anthropic",
                                         "openai",     "openai-compat", "vllm",     "none"};
const std::map<std::string, std::string> kBackendAliases{{"claude", "claude-cli"}, {"codex", "codex-cli"}};

// A project path that stays inside it.
bool stays_inside(const std::string& path) {
    const fs::path normal = fs::path(path).lexically_normal();
    return !normal.is_absolute() && (normal.empty() || *normal.begin() != "..");
}

class ContractReader {
public:
    ContractReader(Problems& problems, const YamlNode& root)
        : problems_(problems),
          top_(problems, {&root, "infrarsi.yaml"},
               {"schema", "name", "launch", "knobs", "constraints", "scope", "invariants", "search", "llm", "debate",
                "requirements", "experience", "target", "targets", "doctor", "isolation"}),
          root_(root) {}

    Contract run(const fs::path& file) {
        contract_.file = fs::absolute(file).lexically_normal();
        contract_.root = contract_.file.parent_path();
        if (root_.kind != YamlNode::Kind::map) return std::move(contract_);
        read_schema();
        read_name();
        read_launch(top_["launch"]);
        contract_.knobs = read_knobs(problems_, top_["knobs"]);
        check_env_knobs();
        read_scope(top_["scope"]);
        read_invariants(top_["invariants"]);
        read_search(top_["search"]);
        read_llm(top_["llm"]);
        read_debate(top_["debate"]);
        read_requirements(top_["requirements"]);
        read_experience(top_["experience"]);
        read_targets();
        read_doctor(top_["doctor"]);
        read_isolation(top_["isolation"]);
        contract_.constraints = read_constraints(problems_, top_["constraints"], contract_);
        return std::move(contract_);
    }

private:
    void read_schema() {
        const Field field = top_["schema"];
        if (!field) {
            problems_.add(root_, "schema is missing; write schema: {} at the top", kSchema);
        } else if (const auto text = read_text(problems_, field); text && *text != kSchema) {
            problems_.add(*field.node, "schema {} is not known; this program reads {}", *text, kSchema);
        }
    }

    void read_name() {
        const Field field = top_["name"];
        contract_.name = contract_.root.filename().string();
        const auto text = read_text(problems_, field);
        if (!text) return;
        const bool printable =
            std::none_of(text->begin(), text->end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
        if (text->empty() || text->size() > 200 || !printable) {
            problems_.add(*field.node, "name must be one line of 1 to 200 bytes");
        } else {
            contract_.name = *text;
        }
    }

    void read_launch(const Field& field) {
        Launch& launch = contract_.launch;
        const MapReader map(
            problems_, field,
            {"command", "cwd", "env", "stack", "gpus_per_node", "nodes", "updates", "warmup", "timeout"});
        launch.command = read_command(map["command"], field ? *field.node : root_, "launch.command");
        read_cwd(map["cwd"]);
        read_env(map["env"]);
        const auto stack =
            read_choice(problems_, map["stack"], {"auto", "megatron", "torchtitan", "deepspeed", "hf", "ddp"});
        for (const Stack candidate : {Stack::megatron, Stack::torchtitan, Stack::deepspeed, Stack::hf, Stack::ddp}) {
            if (stack && *stack == to_string(candidate)) launch.stack = candidate;
        }
        if (const Field gpus = map["gpus_per_node"]; !is_word(gpus, "auto")) {
            if (const auto count = read_integer(problems_, gpus, 0, 1024))
                launch.gpus_per_node = static_cast<int>(*count);
        }
        launch.nodes = static_cast<int>(read_integer(problems_, map["nodes"], 1, 65536).value_or(launch.nodes));
        launch.updates = static_cast<int>(read_integer(problems_, map["updates"], 3, kMany).value_or(launch.updates));
        launch.warmup = static_cast<int>(read_integer(problems_, map["warmup"], 0, kMany).value_or(launch.warmup));
        if (launch.updates - launch.warmup < 2) {
            const Field at = map["warmup"] ? map["warmup"] : map["updates"];
            problems_.add(
                *at.node,
                "{} updates with {} of warmup leave {} to measure; leave at least 2 (warmup is 10 when not given)",
                launch.updates, launch.warmup, std::max(launch.updates - launch.warmup, 0));
        }
        if (const Field timeout = map["timeout"]; !is_word(timeout, "auto")) {
            launch.timeout_s = read_duration(problems_, timeout, BareNumber::refused);
        }
    }

    // A required shell command.
    std::string read_command(const Field& field, const YamlNode& place, std::string_view path) {
        if (!field) {
            problems_.add(place, "{} is missing; write the command line that runs today", path);
            return "";
        }
        const auto text = read_text(problems_, field);
        if (text && text->find_first_not_of(" \t\n") == std::string::npos) {
            problems_.add(*field.node, "{} is empty; write the command line that runs today", path);
        }
        return text.value_or("");
    }

    void read_cwd(const Field& field) {
        const auto text = read_text(problems_, field);
        if (!text) return;
        if (text->empty() || !stays_inside(*text)) {
            problems_.add(*field.node,
                          "launch.cwd must be a folder inside the project, relative to its root, found \"{}\"", *text);
        } else {
            contract_.launch.cwd = *text;
        }
    }

    void read_env(const Field& field) {
        for (const YamlEntry* entry : read_entries(problems_, field)) {
            const std::string& name = entry->key.text;
            if (!is_identifier(name)) {
                problems_.add(entry->key, "launch.env: \"{}\" is no name of a variable", name);
            } else if (entry->value.kind == YamlNode::Kind::null) {
                problems_.add(entry->key, "launch.env.{} has no value; write \"\" for an empty one, or remove it",
                              name);
            } else if (entry->value.kind != YamlNode::Kind::scalar) {
                problems_.add(entry->value, "launch.env.{} must be a single value, found {}", name,
                              describe(entry->value));
            } else {
                contract_.launch.env[name] = entry->value.text;
            }
        }
    }

    // launch.env and a knob may name one variable only when they agree on what it is today.
    void check_env_knobs() {
        for (const Knob& knob : contract_.knobs) {
            if (knob.kind != KnobKind::env) continue;
            const auto set = contract_.launch.env.find(knob.spelling);
            if (set == contract_.launch.env.end() || same_effect(Value{set->second}, knob.reference)) continue;
            const YamlNode* place = top_.raw("knobs")->find(knob.name);
            problems_.add(*place, "launch.env sets {} to {}, but the reference of the knob {} is {}; make them agree",
                          knob.spelling, set->second, knob.name, to_text(knob.reference));
        }
    }

    std::vector<std::string> read_globs(const Field& field) {
        std::vector<std::string> globs;
        for (const Field& item : read_list(problems_, field)) {
            const auto text = read_text(problems_, item);
            if (!text) continue;
            if (const auto glob = Glob::parse(*text); !glob) {
                problems_.add(*item.node, "{}: {}", item.path, glob.error().message());
            } else {
                globs.push_back(*text);
            }
        }
        return globs;
    }

    void read_scope(const Field& field) {
        const MapReader map(problems_, field, {"editable", "frozen"});
        contract_.editable = read_globs(map["editable"]);
        contract_.frozen = read_globs(map["frozen"]);
    }

    void read_invariants(const Field& field) {
        InvariantRules& rules = contract_.invariants;
        const MapReader map(problems_, field,
                            {"tolerance", "eval", "resume", "tests", "precision_menu", "memory_cap_gib", "required"});
        constexpr NumberRange kTolerance{0, 1, false};
        rules.tolerance = read_number(problems_, map["tolerance"], kTolerance).value_or(rules.tolerance);
        if (const Field eval = map["eval"]) {
            const MapReader inner(problems_, eval, {"command", "metric", "tolerance"});
            EvalCheck check;
            check.command = read_command(inner["command"], *eval.node, "invariants.eval.command");
            check.metric = read_command(inner["metric"], *eval.node, "invariants.eval.metric");
            check.tolerance = read_number(problems_, inner["tolerance"], kTolerance).value_or(rules.tolerance);
            rules.eval = check;
        }
        if (const Field resume = map["resume"]) {
            const MapReader inner(problems_, resume, {"save_at"});
            if (!inner["save_at"])
                problems_.add(*resume.node, "invariants.resume has no save_at; write the update to save at");
            const auto save_at = read_integer(problems_, inner["save_at"], 1, contract_.launch.updates - 1);
            if (save_at) rules.resume = ResumeCheck{static_cast<int>(*save_at)};
        }
        rules.tests = read_texts(problems_, map["tests"]);
        for (const Field& item : read_list(problems_, map["precision_menu"])) {
            if (auto dtype = read_choice(problems_, item, {"fp32", "bf16", "fp16", "fp8"}))
                rules.precision_menu.push_back(*dtype);
        }
        if (const Field cap = map["memory_cap_gib"]; !is_word(cap, "auto")) {
            rules.memory_cap_gib = read_number(problems_, cap, {0, 100'000, false});
        }
        read_required(map["required"]);
    }

    void read_required(const Field& field) {
        if (!field || is_word(field, "strict")) return;
        if (field.node->kind != YamlNode::Kind::sequence) {
            problems_.add(*field.node, "invariants.required must be strict or a list of invariants, found {}",
                          describe(*field.node));
            return;
        }
        contract_.invariants.strict = false;
        for (const Field& item : read_list(problems_, field)) {
            if (auto id = read_choice(problems_, item, kInvariants)) contract_.invariants.required.push_back(*id);
        }
    }

    void read_search(const Field& field) {
        const MapReader map(problems_, field, {"budget", "seed"});
        contract_.seed = static_cast<std::uint64_t>(read_integer(problems_, map["seed"], 0, INT64_MAX).value_or(0));
        const MapReader inner(
            problems_, map["budget"],
            {"screens", "wallclock", "gpu_hours", "llm_tokens", "llm_usd", "target_speedup", "target_mfu"});
        Budget& budget = contract_.budget;
        if (const auto screens = read_integer(problems_, inner["screens"], 1, kMany))
            budget.screens = static_cast<int>(*screens);
        budget.wallclock_s = read_duration(problems_, inner["wallclock"], BareNumber::hours);
        budget.gpu_hours = read_number(problems_, inner["gpu_hours"], {0, INFINITY, false});
        budget.llm_tokens = read_count(problems_, inner["llm_tokens"]);
        budget.llm_usd = read_number(problems_, inner["llm_usd"], {0, INFINITY, false});
        budget.target_speedup = read_number(problems_, inner["target_speedup"], {1, 1000, false});
        budget.target_mfu = read_share(problems_, inner["target_mfu"]);
        // Targets end a search early, but only a limit is sure to end it.
        const bool limited = budget.wallclock_s || budget.gpu_hours || budget.llm_tokens || budget.llm_usd;
        if (!budget.screens && !limited) budget.screens = 16;
    }

    // `backend` or, where allowed, `backend:model`; aliases become the full name.
    std::optional<std::string> read_backend(const Field& field, bool with_model) {
        const auto text = read_text(problems_, field);
        if (!text) return std::nullopt;
        const auto colon = text->find(':');
        std::string backend = text->substr(0, colon);
        if (const auto alias = kBackendAliases.find(backend); alias != kBackendAliases.end()) backend = alias->second;
        if (std::find(kBackends.begin(), kBackends.end(), backend) == kBackends.end()) {
            problems_.add(*field.node, "{}: there is no backend {}{}; there are {}", field.path, backend,
                          did_you_mean(backend, kBackends), one_of(kBackends));
            return std::nullopt;
        }
        if (colon == std::string::npos) return backend;
        if (!with_model) {
            problems_.add(*field.node, "{} takes the backend alone; write backend: {} and model: {}", field.path,
                          backend, text->substr(colon + 1));
            return std::nullopt;
        }
        return backend + text->substr(colon);
    }

    void read_llm(const Field& field) {
        LlmChoice& llm = contract_.llm;
        const MapReader map(
            problems_, field,
            {"backend", "model", "base_url", "api_key_env", "context_tokens", "extra_body", "capability"});
        llm.backend = read_backend(map["backend"], false).value_or(llm.backend);
        llm.model = read_text(problems_, map["model"]).value_or("");
        llm.base_url = read_text(problems_, map["base_url"]).value_or("");
        if (!llm.base_url.empty() && !llm.base_url.starts_with("http://") && !llm.base_url.starts_with("https://")) {
            problems_.add(*map["base_url"].node, "llm.base_url must begin with http:// or https://, found \"{}\"",
                          llm.base_url);
        }
        if (const Field key = map["api_key_env"]) {
            llm.api_key_env = read_text(problems_, key).value_or("");
            // The text is not repeated: it may be the key.
            if (!llm.api_key_env.empty() && !is_identifier(llm.api_key_env)) {
                problems_.add(
                    *key.node,
                    "llm.api_key_env must be the name of the variable that holds the key, not the key itself");
                llm.api_key_env.clear();
            }
        }
        if (const auto tokens = read_count(problems_, map["context_tokens"])) {
            llm.context_tokens = static_cast<int>(std::min<std::int64_t>(*tokens, INT32_MAX));
        }
        if (const Field body = map["extra_body"]) {
            if (body.node->kind == YamlNode::Kind::map) {
                llm.extra_body = canonical_json(to_json_tree(*body.node));
            } else {
                problems_.add(*body.node, "llm.extra_body must be a mapping, found {}", describe(*body.node));
            }
        }
        if (const Field capability = map["capability"]; !is_word(capability, "auto")) {
            llm.capability = read_number(problems_, capability, {0, 1, true});
        }
    }

    nlohmann::json to_json_tree(const YamlNode& node) {
        if (node.kind == YamlNode::Kind::map) {
            nlohmann::json object = nlohmann::json::object();
            const Field field{&node, "llm.extra_body"};
            for (const YamlEntry* entry : read_entries(problems_, field))
                object[entry->key.text] = to_json_tree(entry->value);
            return object;
        }
        if (node.kind == YamlNode::Kind::sequence) {
            nlohmann::json array = nlohmann::json::array();
            for (const auto& item : node.items) array.push_back(to_json_tree(item));
            return array;
        }
        return to_json(node.value());
    }

    void read_debate(const Field& field) {
        const MapReader map(problems_, field, {"enabled", "second", "verifier", "verify_rounds"});
        contract_.debate_enabled = read_flag(problems_, map["enabled"]).value_or(false);
        contract_.debate_second = read_backend(map["second"], true).value_or("");
        contract_.debate_verifier = read_backend(map["verifier"], true).value_or("");
        contract_.debate_verify_rounds =
            static_cast<int>(read_integer(problems_, map["verify_rounds"], 1, 10).value_or(2));
        if (contract_.debate_enabled && !map["second"]) {
            problems_.add(*field.node,
                          "debate.enabled needs a second model; write second: backend or second: backend:model");
        }
    }

    void read_requirements(const Field& field) {
        const MapReader map(problems_, field, {"text", "on_unsupported"});
        contract_.requirements = read_texts(problems_, map["text"]);
        contract_.on_unsupported = read_choice(problems_, map["on_unsupported"], {"stop", "continue"}).value_or("stop");
    }

    void read_experience(const Field& field) {
        if (!field) return;
        if (field.node->kind == YamlNode::Kind::sequence) {
            const auto patterns = read_texts(problems_, field);
            if (!patterns.empty()) contract_.experience = fmt::format("{}", fmt::join(patterns, ","));
            return;
        }
        const auto text = read_text(problems_, field);
        if (text && text->find_first_not_of(" ,") == std::string::npos) {
            problems_.add(*field.node, "experience must be auto, off or pack-id patterns, found \"{}\"", *text);
        } else if (text) {
            contract_.experience = *text;
        }
    }

    void read_targets() {
        static const std::map<std::string, std::vector<std::string>> kFields{
            {"local", {"kind", "workdir", "python", "gpus"}},
            {"simulate", {"kind", "workload", "seed", "noise"}},
            {"ssh", {"kind", "host", "user", "port", "identity_file", "workdir", "python", "gpus", "setup"}},
            {"slurm",
             {"kind", "host", "user", "port", "identity_file", "workdir", "python", "setup", "partition", "account",
              "qos", "gres", "time", "nodes", "constraint", "reservation", "extra_args"}}};
        for (const YamlEntry* entry : read_entries(problems_, top_["targets"])) {
            const std::string path = "targets." + entry->key.text;
            if (entry->value.kind != YamlNode::Kind::map) {
                problems_.add(entry->value, "{} must be a mapping with a kind, found {}", path, describe(entry->value));
                continue;
            }
            const YamlNode* kind_node = entry->value.find("kind");
            if (!kind_node) {
                problems_.add(entry->key, "{} has no kind; write kind: local, ssh, slurm or simulate", path);
                continue;
            }
            const auto kind =
                read_choice(problems_, {kind_node, path + ".kind"}, {"local", "ssh", "slurm", "simulate"});
            if (!kind) continue;
            const MapReader map(problems_, {&entry->value, path}, kFields.at(*kind));
            Target target{entry->key.text, *kind, {}};
            for (const auto& name : kFields.at(*kind)) read_target_field(target, map[name], name);
            if (*kind == "ssh" && !map["host"]) problems_.add(entry->key, "{} has no host; write host: name", path);
            contract_.targets.push_back(std::move(target));
        }
        contract_.target = read_text(problems_, top_["target"]).value_or("local");
    }

    void read_target_field(Target& target, const Field& field, const std::string& name) {
        if (!field || name == "kind") return;
        if (field.node->kind != YamlNode::Kind::scalar) {
            problems_.add(*field.node, "{} must be a single value, found {}", field.path, describe(*field.node));
        } else {
            target.fields[name] = field.node->text;
        }
    }

    void read_doctor(const Field& field) {
        const MapReader map(problems_, field, {"on_save"});
        contract_.doctor_on_save = read_choice(problems_, map["on_save"], {"off", "quick", "full"}).value_or("quick");
    }

    void read_isolation(const Field& field) {
        const MapReader map(problems_, field, {"sandbox", "network", "env_allow"});
        const auto sandbox = read_choice(problems_, map["sandbox"], {"auto", "bwrap", "none"});
        for (const Sandbox candidate : {Sandbox::bwrap, Sandbox::none}) {
            if (sandbox && *sandbox == to_string(candidate)) contract_.isolation.sandbox = candidate;
        }
        contract_.isolation.network = read_choice(problems_, map["network"], {"inherit", "none"}).value_or("inherit");
        for (const Field& item : read_list(problems_, map["env_allow"])) {
            const auto name = read_text(problems_, item);
            if (!name) continue;
            const std::string_view stem =
                name->ends_with('*') ? std::string_view(*name).substr(0, name->size() - 1) : *name;
            if (is_identifier(stem)) {
                contract_.isolation.env_allow.push_back(*name);
            } else {
                problems_.add(*item.node,
                              "{} must be the name of a variable or the beginning of one with *, found \"{}\"",
                              item.path, *name);
            }
        }
    }

    Problems& problems_;
    MapReader top_;
    const YamlNode& root_;
    Contract contract_;
};

struct Parsed {
    Contract contract;
    std::vector<Error> errors;
};

Parsed parse(std::string_view text, const fs::path& file) {
    Problems problems(file.string());
    const auto root = parse_yaml(text, file.string(), kLargestFile);
    if (!root) return {{}, {root.error()}};
    if (root->kind == YamlNode::Kind::null) {
        problems.add_error(
            Error(ErrorKind::invalid_input,
                  "the file is empty; write it with `infrarsi init`, or begin with schema: " + std::string(kSchema))
                .at({file.string(), 1, 1}));
        return {{}, problems.take()};
    }
    Contract contract = ContractReader(problems, *root).run(file);
    return {std::move(contract), problems.take()};
}

}  // namespace

Expected<Contract> parse_contract(std::string_view text, const fs::path& file) {
    Parsed parsed = parse(text, file);
    if (parsed.errors.empty()) return std::move(parsed.contract);
    const Error& first = parsed.errors.front();
    const std::size_t others = parsed.errors.size() - 1;
    if (others == 0) return Unexpected(first);
    Error counted(first.kind(),
                  fmt::format("{} (and {} more problem{})", first.message(), others, others == 1 ? "" : "s"),
                  first.where());
    return Unexpected(std::move(counted).at(first.place().value_or(Place{file.string()})));
}

Expected<Contract> read_contract(const fs::path& file) {
    const fs::path absolute = fs::absolute(file).lexically_normal();
    INFRARSI_ASSIGN(const std::string text, read_file(absolute));
    return parse_contract(text, absolute);
}

std::vector<Error> check_contract(std::string_view text, const fs::path& file) {
    return parse(text, file).errors;
}

}  // namespace infrarsi
