#include "core/contract/contract.h"

#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/json.h"

namespace infrarsi {

namespace {

using nlohmann::json;

template <class T>
json optional_json(const std::optional<T>& value) {
    return value ? json(*value) : json(nullptr);
}

// Order means nothing in these lists.
json set_json(std::vector<std::string> items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    return items;
}

json launch_json(const Launch& launch) {
    return {{"command", launch.command},
            {"cwd", launch.cwd},
            {"env", launch.env},
            {"stack", to_string(launch.stack)},
            {"gpus_per_node", optional_json(launch.gpus_per_node)},
            {"nodes", launch.nodes},
            {"updates", launch.updates},
            {"warmup", launch.warmup},
            {"timeout_s", optional_json(launch.timeout_s)}};
}

json knobs_json(const std::vector<Knob>& knobs) {
    json result = json::object();
    for (const Knob& knob : knobs) {
        std::vector<std::string> values;  // sorted by their JSON text: any fixed order does
        for (const Value& value : knob.values) values.push_back(canonical_json(to_json(value)));
        json item{{"kind", to_string(knob.kind)},
                  {"spelling", knob.spelling},
                  {"values", set_json(std::move(values))},
                  {"reference", to_json(knob.reference)},
                  {"mechanism", knob.mechanism}};
        if (knob.kind == KnobKind::flag) item["form"] = to_string(knob.form);
        result[knob.name] = std::move(item);
    }
    return result;
}

json invariants_json(const InvariantRules& rules) {
    json result{{"tolerance", rules.tolerance},
                {"tests", rules.tests},
                {"precision_menu", set_json(rules.precision_menu)},
                {"memory_cap_gib", optional_json(rules.memory_cap_gib)},
                {"strict", rules.strict},
                {"required", set_json(rules.required)},
                {"eval", nullptr},
                {"resume", nullptr}};
    if (rules.eval) {
        result["eval"] = {
            {"command", rules.eval->command}, {"metric", rules.eval->metric}, {"tolerance", rules.eval->tolerance}};
    }
    if (rules.resume) {
        result["resume"] = {{"save_at", rules.resume->save_at}, {"command", rules.resume->command}};
    }
    return result;
}

json budget_json(const Budget& budget) {
    return {{"screens", optional_json(budget.screens)},      {"wallclock_s", optional_json(budget.wallclock_s)},
            {"gpu_hours", optional_json(budget.gpu_hours)},  {"llm_tokens", optional_json(budget.llm_tokens)},
            {"llm_usd", optional_json(budget.llm_usd)},      {"target_speedup", optional_json(budget.target_speedup)},
            {"target_mfu", optional_json(budget.target_mfu)}};
}

json llm_json(const LlmChoice& llm) {
    return {{"backend", llm.backend},
            {"model", llm.model},
            {"base_url", llm.base_url},
            {"api_key_env", llm.api_key_env},
            {"context_tokens", optional_json(llm.context_tokens)},
            {"extra_body", llm.extra_body},
            {"capability", optional_json(llm.capability)}};
}

// The part that the digest is over.
json meaning_json(const Contract& contract) {
    return {{"schema", "infrarsi-project-v1"},
            {"launch", launch_json(contract.launch)},
            {"knobs", knobs_json(contract.knobs)},
            {"constraints", set_json(contract.constraints)},
            {"scope", {{"editable", set_json(contract.editable)}, {"frozen", set_json(contract.frozen)}}},
            {"invariants", invariants_json(contract.invariants)},
            {"requirements", {{"text", contract.requirements}, {"on_unsupported", contract.on_unsupported}}},
            {"isolation",
             {{"sandbox", to_string(contract.isolation.sandbox)},
              {"network", contract.isolation.network},
              {"env_allow", set_json(contract.isolation.env_allow)}}}};
}

}  // namespace

const Knob* Contract::knob(const std::string& wanted) const {
    for (const Knob& candidate : knobs) {
        if (candidate.name == wanted) return &candidate;
    }
    return nullptr;
}

Settings Contract::reference_settings() const {
    Settings settings;
    for (const Knob& knob : knobs) settings[knob.name] = knob.reference;
    return settings;
}

Settings Contract::differences(const Settings& changes) const {
    Settings result;
    for (const auto& [knob_name, value] : changes) {
        const Knob* found = knob(knob_name);
        if (!found || !same_effect(found->reference, value)) result[knob_name] = value;
    }
    return result;
}

Settings Contract::complete(const Settings& changes) const {
    Settings result = reference_settings();
    for (const auto& [knob_name, value] : changes) result[knob_name] = value;
    return result;
}

nlohmann::json contract_json(const Contract& contract) {
    json result = meaning_json(contract);
    result["name"] = contract.name;
    result["search"] = {{"budget", budget_json(contract.budget)}, {"seed", contract.seed}};
    result["llm"] = llm_json(contract.llm);
    result["debate"] = {{"enabled", contract.debate_enabled},
                        {"second", contract.debate_second},
                        {"verifier", contract.debate_verifier},
                        {"verify_rounds", contract.debate_verify_rounds}};
    result["experience"] = contract.experience;
    result["target"] = contract.target;
    result["targets"] = json::object();
    for (const Target& target : contract.targets) {
        result["targets"][target.name] = {{"kind", target.kind}, {"fields", target.fields}};
    }
    result["doctor"] = {{"on_save", contract.doctor_on_save}};
    return result;
}

std::string contract_digest(const Contract& contract) {
    return sha256_hex(canonical_json(meaning_json(contract)));
}

std::string_view to_string(Stack stack) {
    switch (stack) {
        case Stack::auto_: return "auto";
        case Stack::megatron: return "megatron";
        case Stack::torchtitan: return "torchtitan";
        case Stack::deepspeed: return "deepspeed";
        case Stack::hf: return "hf";
        case Stack::ddp: return "ddp";
    }
    return "auto";
}

std::string_view to_string(KnobKind kind) {
    switch (kind) {
        case KnobKind::flag: return "flag";
        case KnobKind::env: return "env";
        case KnobKind::config: return "config";
    }
    return "flag";
}

std::string_view to_string(FlagForm form) {
    switch (form) {
        case FlagForm::value: return "value";
        case FlagForm::equals: return "equals";
        case FlagForm::switch_: return "switch";
        case FlagForm::negatable: return "negatable";
    }
    return "value";
}

std::string_view to_string(Sandbox sandbox) {
    switch (sandbox) {
        case Sandbox::auto_: return "auto";
        case Sandbox::bwrap: return "bwrap";
        case Sandbox::none: return "none";
    }
    return "auto";
}

}  // namespace infrarsi
