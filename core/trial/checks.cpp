#include "core/trial/checks.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

bool is_name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
}

// The number after a metric's name, past quotes and one separator.
std::optional<double> number_after(std::string_view rest) {
    if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
    const auto skip_blanks = [&] {
        while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t')) rest.remove_prefix(1);
    };
    skip_blanks();
    if (!rest.empty() && (rest[0] == '=' || rest[0] == ':')) rest.remove_prefix(1);
    skip_blanks();
    if (rest.starts_with('+')) rest.remove_prefix(1);
    double number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{}) return std::nullopt;
    return number;
}

std::string tail_of(const fs::path& file) {
    const auto text = read_file(file);
    if (!text) return {};
    std::string tail = text->size() > 400 ? text->substr(text->size() - 400) : *text;
    while (!tail.empty() && std::isspace(static_cast<unsigned char>(tail.back())) != 0) tail.pop_back();
    return tail;
}

// What agent.json says of a check that is over.
void read_end(const fs::path& out, CheckResult& result) {
    const auto end = read_json(out / "agent.json");
    if (!end || !end->is_object()) {
        result.exit_code = 127;
        result.note = "the check left no result";
        return;
    }
    const auto whole = [&](const char* key) -> std::optional<int> {
        const auto found = end->find(key);
        if (found == end->end() || !found->is_number_integer()) return std::nullopt;
        return found->get<int>();
    };
    const auto text = [&](const char* key) -> std::string {
        const auto found = end->find(key);
        return found != end->end() && found->is_string() ? found->get<std::string>() : "";
    };
    const auto number = whole("signal");
    result.exit_code = whole("exit_code").value_or(number ? 128 + *number : 127);
    if (const std::string limit = text("timed_out"); !limit.empty()) {
        result.note = limit == "silence" ? "ended: it was silent for too long" : "ended: it took too long";
        if (result.exit_code == 0) result.exit_code = 124;
    } else if (const std::string error = text("error"); !error.empty()) {
        result.note = error;
    } else if (result.exit_code != 0) {
        result.note = tail_of(out / "stderr.log");
        if (result.note.empty()) result.note = tail_of(out / "stdout.log");
    }
}

Expected<CheckResult> run_one(const std::string& command, const std::string& name, const TrialSetup& setup,
                              const AgentSpec& base, const AgentWait& wait) {
    AgentSpec spec = base;
    spec.command = command;
    spec.out = base.out / "checks" / name;
    spec.updates.reset();
    spec.hook.reset();
    INFRARSI_TRY(remove_tree(spec.out));  // half a run of a runner that was killed
    CheckResult result;
    result.command = command;
    INFRARSI_ASSIGN(const ProcessId agent, start_agent(spec, setup, wait.target));
    switch (wait_for_agent(agent, spec.out, {wait.target, wait.clock, wait.stop, nullptr})) {
        case AgentEnd::cancelled: return fail(ErrorKind::cancelled, "stopped while running the check '{}'", command);
        case AgentEnd::died:
            result.exit_code = 127;
            result.note = "the trial agent died: " + agent_last_words(spec.out);
            break;
        case AgentEnd::finished: read_end(spec.out, result); break;
    }
    return result;
}

}  // namespace

std::optional<double> find_metric(std::string_view output, std::string_view metric) {
    if (metric.empty()) return std::nullopt;
    std::optional<double> found;
    for (auto at = output.find(metric); at != std::string_view::npos; at = output.find(metric, at + 1)) {
        if (at > 0 && is_name_char(output[at - 1])) continue;
        const std::string_view rest = output.substr(at + metric.size());
        if (!rest.empty() && is_name_char(rest[0])) continue;
        if (const auto number = number_after(rest)) found = number;
    }
    return found;
}

Expected<void> run_checks(const TrialSetup& setup, const AgentSpec& base, const AgentWait& wait, Receipt& receipt) {
    const InvariantRules& rules = setup.contract->invariants;
    if (rules.eval) {
        INFRARSI_ASSIGN(CheckResult result, run_one(rules.eval->command, "eval", setup, base, wait));
        const auto output = read_file(base.out / "checks" / "eval" / "stdout.log");
        if (output) result.value = find_metric(*output, rules.eval->metric);
        if (!result.value && result.exit_code == 0) {
            result.note = fmt::format("its output states no number for '{}'; print a line such as {}=1.23",
                                      rules.eval->metric, rules.eval->metric);
        }
        receipt.eval = std::move(result);
    }
    receipt.tests.clear();
    for (std::size_t i = 0; i < rules.tests.size(); ++i) {
        INFRARSI_ASSIGN(CheckResult result, run_one(rules.tests[i], fmt::format("test-{}", i + 1), setup, base, wait));
        receipt.tests.push_back(std::move(result));
    }
    return {};
}

}  // namespace infrarsi
