#include "core/base/files.h"
#include "core/base/yaml_node.h"
#include "core/contract/contract.h"
#include "core/contract/read_choices.h"
#include "core/contract/read_knobs.h"
#include "core/contract/scope.h"
#include "core/contract/yaml_reader.h"

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
        read_choices(problems_, top_, contract_);
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
            const MapReader inner(problems_, resume, {"save_at", "command"});
            if (!inner["save_at"])
                problems_.add(*resume.node, "invariants.resume has no save_at; write the update to save at");
            const auto save_at = read_integer(problems_, inner["save_at"], 1, contract_.launch.updates - 1);
            std::string command;
            if (inner["command"]) {
                command = read_command(inner["command"], *resume.node, "invariants.resume.command");
            }
            if (save_at) rules.resume = ResumeCheck{static_cast<int>(*save_at), std::move(command)};
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
