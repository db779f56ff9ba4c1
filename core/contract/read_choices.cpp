#include "core/contract/read_choices.h"

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/text/nearest.h"

namespace infrarsi {

namespace {

constexpr std::int64_t kMany = 1'000'000;

const std::vector<std::string> kBackends{"claude-cli", "codex-cli",     "deepseek", "anthropic",
                                         "openai",     "openai-compat", "vllm",     "none"};
const std::map<std::string, std::string> kBackendAliases{{"claude", "claude-cli"}, {"codex", "codex-cli"}};

class ChoiceReader {
public:
    ChoiceReader(Problems& problems, const MapReader& top, Contract& contract)
        : problems_(problems), top_(top), contract_(contract) {}

    void run() {
        read_search(top_["search"]);
        read_llm(top_["llm"]);
        read_debate(top_["debate"]);
        read_requirements(top_["requirements"]);
        read_experience(top_["experience"]);
        read_targets();
        read_doctor(top_["doctor"]);
        read_isolation(top_["isolation"]);
    }

private:
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
    const MapReader& top_;
    Contract& contract_;
};

}  // namespace

void read_choices(Problems& problems, const MapReader& top, Contract& contract) {
    ChoiceReader(problems, top, contract).run();
}

}  // namespace infrarsi
