#include "core/contract/write_contract.h"

#include <nlohmann/json.hpp>

#include "core/base/yaml_node.h"
#include "core/contract/yaml_edit.h"

namespace infrarsi {

namespace {

std::string scalar(const std::string& text) {
    return yaml_scalar(Value{text});
}

// Shell commands are always quoted: they are full of characters that YAML might read.
std::string quoted(const std::string& text) {
    const std::string written = scalar(text);
    return written.starts_with('"') ? written : '"' + written + '"';
}

std::string flow_list(const std::vector<std::string>& items) {
    std::vector<std::string> written;
    for (const auto& item : items) written.push_back(scalar(item));
    return fmt::format("[{}]", fmt::join(written, ", "));
}

std::string flow_list(const std::vector<Value>& items) {
    std::vector<std::string> written;
    for (const auto& item : items) written.push_back(yaml_scalar(item));
    return fmt::format("[{}]", fmt::join(written, ", "));
}

std::string number(double value) {
    return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{}", static_cast<std::int64_t>(value))
                                                                : fmt::format("{}", value);
}

// Whole hours, minutes or seconds, whichever is exact.
std::string duration(double seconds) {
    for (const auto& [unit, length] : {std::pair{'h', 3600.0}, std::pair{'m', 60.0}}) {
        const double count = seconds / length;
        if (count == std::floor(count) && count < 1e9)
            return fmt::format("{}{}", static_cast<std::int64_t>(count), unit);
    }
    return number(seconds) + "s";
}

class Writer {
public:
    Writer(const Contract& contract, const ContractComments& comments) : contract_(contract), comments_(comments) {}

    std::string run() {
        comment("", comments_.header);
        if (!comments_.header.empty()) line("");
        line("schema: infrarsi-project-v1");
        line("name: " + scalar(contract_.name));
        write_launch();
        write_knobs();
        write_constraints();
        write_scope();
        write_invariants();
        write_search();
        write_llm();
        write_debate();
        write_requirements();
        write_places();
        return std::move(out_);
    }

private:
    void line(const std::string& text) { out_ += text + '\n'; }

    void comment(const std::string& indent, const std::string& text) {
        for (std::size_t start = 0; start < text.size();) {
            const std::size_t end = std::min(text.find('\n', start), text.size());
            const std::string content = text.substr(start, end - start);
            line(content.empty() ? indent + "#" : indent + "# " + content);
            start = end + 1;
        }
    }

    // `  key: value`, with the remark for it above.
    void entry(const std::string& section, const std::string& key, const std::string& value) {
        if (const auto remark = comments_.entries.find(section + "." + key); remark != comments_.entries.end())
            comment("  ", remark->second);
        line(fmt::format("  {}: {}", key, value));
    }

    void section(const std::string& name, const std::string& about) {
        line("");
        comment("", about);
        line(name + ":");
    }

    void write_launch() {
        const Launch& launch = contract_.launch;
        section("launch", "How the job is started today. A trial runs this with the knobs below changed.");
        entry("launch", "command", quoted(launch.command));
        if (launch.cwd != ".") entry("launch", "cwd", scalar(launch.cwd));
        if (!launch.env.empty()) {
            line("  env:");
            for (const auto& [name, value] : launch.env) line(fmt::format("    {}: {}", name, quoted(value)));
        }
        entry("launch", "stack", std::string(to_string(launch.stack)));
        entry("launch", "gpus_per_node", launch.gpus_per_node ? std::to_string(*launch.gpus_per_node) : "auto");
        entry("launch", "nodes", std::to_string(launch.nodes));
        entry("launch", "updates", fmt::format("{}  # optimizer updates in a trial", launch.updates));
        entry("launch", "warmup", fmt::format("{}  # first updates, left out of the measurement", launch.warmup));
        entry("launch", "timeout", launch.timeout_s ? duration(*launch.timeout_s) : "auto  # from the reference run");
    }

    void write_knobs() {
        line("");
        comment("",
                "What may change, with every legal value. `reference` is what the job uses today; null means not set.");
        if (contract_.knobs.empty()) return line("knobs: {}");
        line("knobs:");
        for (const Knob& knob : contract_.knobs) {
            if (const auto why = comments_.knobs.find(knob.name); why != comments_.knobs.end())
                comment("  ", why->second);
            std::string text = fmt::format("  {}: {{{}: {}, values: {}, reference: {}", knob.name, to_string(knob.kind),
                                           scalar(knob.spelling), flow_list(knob.values), yaml_scalar(knob.reference));
            if (knob.kind == KnobKind::flag && knob.form != default_form(knob))
                text += fmt::format(", form: {}", to_string(knob.form));
            if (!knob.mechanism.empty()) text += ", mechanism: " + scalar(knob.mechanism);
            line(text + "}");
        }
    }

    // What read_contract takes when no form is written.
    static FlagForm default_form(const Knob& knob) {
        bool any = false;
        for (const Value& value : knob.values) {
            if (is_null(value)) continue;
            if (!std::holds_alternative<bool>(value)) return FlagForm::value;
            any = true;
        }
        return any ? FlagForm::switch_ : FlagForm::value;
    }

    void write_constraints() {
        line("");
        comment("",
                "Rules between knobs, such as \"micro_batch * grad_accum == 16\" or \"!(compile && recompute == "
                "'full')\".\n"
                "That sequences per update stay the same is always checked, without a rule here.");
        if (contract_.constraints.empty()) return line("constraints: []");
        line("constraints:");
        for (const auto& text : contract_.constraints) line("  - " + quoted(text));
    }

    void write_globs(const std::string& key, const std::vector<std::string>& globs) {
        if (globs.empty()) return line(fmt::format("  {}: []", key));
        line(fmt::format("  {}:", key));
        for (const auto& glob : globs) {
            const auto why = comments_.scope.find(glob);
            std::string remark = why == comments_.scope.end() ? "" : why->second;
            std::replace(remark.begin(), remark.end(), '\n', ' ');
            line(fmt::format("    - {}{}{}", quoted(glob), remark.empty() ? "" : "  # ", remark));
        }
    }

    void write_scope() {
        section("scope", "Which files a patch may touch. Frozen wins over editable; digests are in infrarsi.lock.");
        write_globs("editable", contract_.editable);
        write_globs("frozen", contract_.frozen);
    }

    void write_invariants() {
        const InvariantRules& rules = contract_.invariants;
        section("invariants", "What must stay the same for a faster run to count.");
        entry("invariants", "tolerance", number(rules.tolerance) + "  # relative deviation of the mean loss");
        if (rules.eval) {
            line(fmt::format("  eval: {{command: {}, metric: {}, tolerance: {}}}", quoted(rules.eval->command),
                             quoted(rules.eval->metric), number(rules.eval->tolerance)));
        } else {
            line("  # eval: {command: \"python eval.py\", metric: accuracy, tolerance: 0.01}");
        }
        if (rules.resume) {
            const ResumeCheck& resume = *rules.resume;
            line(fmt::format("  resume: {{save_at: {}{}}}", resume.save_at,
                             resume.command.empty() ? "" : ", command: " + quoted(resume.command)));
        } else {
            line("  # resume: {save_at: 15, command: \"bash train.sh --resume\"}");
        }
        if (rules.tests.empty()) {
            line("  # tests: [\"pytest -q tests\"]");
        } else {
            line("  tests:");
            for (const auto& test : rules.tests) line("    - " + quoted(test));
        }
        if (!rules.precision_menu.empty()) entry("invariants", "precision_menu", flow_list(rules.precision_menu));
        entry("invariants", "memory_cap_gib", rules.memory_cap_gib ? number(*rules.memory_cap_gib) : "auto");
        entry("invariants", "required",
              rules.strict ? "strict  # an invariant without evidence rejects" : flow_list(rules.required));
    }

    void write_search() {
        const Budget& budget = contract_.budget;
        section("search", "When to stop. `screens` counts full training runs.");
        line("  budget:");
        line("    screens: " + (budget.screens ? std::to_string(*budget.screens) : "null"));
        if (budget.wallclock_s) line("    wallclock: " + duration(*budget.wallclock_s));
        if (budget.gpu_hours) line("    gpu_hours: " + number(*budget.gpu_hours));
        if (budget.llm_tokens) line(fmt::format("    llm_tokens: {}", *budget.llm_tokens));
        if (budget.llm_usd) line("    llm_usd: " + number(*budget.llm_usd));
        if (budget.target_speedup) line("    target_speedup: " + number(*budget.target_speedup));
        if (budget.target_mfu) line("    target_mfu: " + number(*budget.target_mfu));
        line(fmt::format("  seed: {}", contract_.seed));
    }

    void write_llm() {
        const LlmChoice& llm = contract_.llm;
        section("llm", "Who proposes changes beside the built-in recipes; none needs no account.");
        entry("llm", "backend", scalar(llm.backend));
        if (!llm.model.empty()) entry("llm", "model", scalar(llm.model));
        if (!llm.base_url.empty()) entry("llm", "base_url", scalar(llm.base_url));
        if (!llm.api_key_env.empty()) entry("llm", "api_key_env", scalar(llm.api_key_env));
        if (llm.context_tokens) entry("llm", "context_tokens", std::to_string(*llm.context_tokens));
        // JSON is YAML.
        if (llm.extra_body != "{}") entry("llm", "extra_body", llm.extra_body);
        if (llm.capability) entry("llm", "capability", number(*llm.capability));
    }

    void write_debate() {
        const bool silent = !contract_.debate_enabled && contract_.debate_second.empty() &&
                            contract_.debate_verifier.empty() && contract_.debate_verify_rounds == 2;
        if (silent) return;
        section("debate", "A second model proposes too, and one checks patches before they run.");
        entry("debate", "enabled", contract_.debate_enabled ? "true" : "false");
        if (!contract_.debate_second.empty()) entry("debate", "second", scalar(contract_.debate_second));
        if (!contract_.debate_verifier.empty()) entry("debate", "verifier", scalar(contract_.debate_verifier));
        entry("debate", "verify_rounds", std::to_string(contract_.debate_verify_rounds));
    }

    void write_requirements() {
        if (contract_.requirements.empty() && contract_.on_unsupported == "stop") return;
        section("requirements", "Wishes in your own words; they can only narrow the search or add checks.");
        if (!contract_.requirements.empty()) line("  text:");
        for (const auto& text : contract_.requirements) line("    - " + quoted(text));
        entry("requirements", "on_unsupported", contract_.on_unsupported);
    }

    void write_places() {
        line("");
        line("experience: " + (contract_.experience == "off" ? "off" : scalar(contract_.experience)) +
             "  # auto, off or pack-id patterns");
        line("target: " + scalar(contract_.target));
        if (!contract_.targets.empty()) line("targets:");
        for (const Target& target : contract_.targets) {
            std::string text = fmt::format("  {}: {{kind: {}", scalar(target.name), target.kind);
            for (const auto& [name, value] : target.fields) text += fmt::format(", {}: {}", name, quoted(value));
            line(text + "}");
        }
        if (contract_.doctor_on_save != "quick") line("doctor: {on_save: " + contract_.doctor_on_save + "}");
        const Isolation& isolation = contract_.isolation;
        if (isolation.sandbox == Sandbox::auto_ && isolation.network == "inherit" && isolation.env_allow.empty())
            return;
        section("isolation", "What a trial may reach.");
        entry("isolation", "sandbox", std::string(to_string(isolation.sandbox)));
        entry("isolation", "network", isolation.network);
        if (!isolation.env_allow.empty()) entry("isolation", "env_allow", flow_list(isolation.env_allow));
    }

    const Contract& contract_;
    const ContractComments& comments_;
    std::string out_;
};

}  // namespace

std::string write_contract_yaml(const Contract& contract, const ContractComments& comments) {
    return Writer(contract, comments).run();
}

}  // namespace infrarsi
