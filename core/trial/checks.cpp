#include "core/trial/checks.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/measure/trial_record.h"

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

// The last line with something in it: a verdict has room for one.
std::string last_line_of(const fs::path& file) {
    const auto text = read_file(file);
    if (!text) return {};
    std::string tail = text->size() > 400 ? text->substr(text->size() - 400) : *text;
    while (!tail.empty() && std::isspace(static_cast<unsigned char>(tail.back())) != 0) tail.pop_back();
    return tail.substr(tail.rfind('\n') + 1);
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
    if (const auto took = end->find("duration_s"); took != end->end() && took->is_number()) {
        result.duration_s = took->get<double>();
    }
    const auto number = whole("signal");
    result.exit_code = whole("exit_code").value_or(number ? 128 + *number : 127);
    if (const std::string limit = text("timed_out"); !limit.empty()) {
        result.note = limit == "silence" ? "ended: it was silent for too long" : "ended: it took too long";
        if (result.exit_code == 0) result.exit_code = 124;
    } else if (const std::string error = text("error"); !error.empty()) {
        result.note = error;
    } else if (result.exit_code != 0) {
        result.note = last_line_of(out / "stderr.log");
        if (result.note.empty()) result.note = last_line_of(out / "stdout.log");
    }
}

// The spec of a check that only has to exit with 0, in the folder `name`.
AgentSpec check_spec(const AgentSpec& base, const std::string& command, const std::string& name) {
    AgentSpec spec = base;
    spec.command = command;
    spec.out = base.out / "checks" / name;
    spec.updates.reset();
    spec.hook.reset();
    return spec;
}

Expected<CheckResult> run_check(const AgentSpec& spec, const TrialSetup& setup, const AgentWait& wait) {
    INFRARSI_TRY(remove_tree(spec.out));  // half a run of a runner that was killed
    CheckResult result;
    result.command = spec.command;
    INFRARSI_ASSIGN(const ProcessId agent, start_agent(spec, setup, wait.target));
    switch (wait_for_agent(agent, spec.out, {wait.target, wait.clock, wait.stop, nullptr})) {
        case AgentEnd::cancelled:
            return fail(ErrorKind::cancelled, "stopped while running the check '{}'", spec.command);
        case AgentEnd::died:
            result.exit_code = 127;
            result.note = "the trial agent died: " + agent_last_words(spec.out);
            break;
        case AgentEnd::finished: read_end(spec.out, result); break;
    }
    return result;
}

// The mean loss of the resumed updates against that of the same updates in the run that was not interrupted.
std::optional<double> loss_deviation(const Receipt& whole, const Receipt& resumed, int save_at) {
    std::map<int, double> expected;
    for (const auto& update : whole.series) {
        if (update.loss) expected[update.n] = *update.loss;
    }
    double got = 0, wanted = 0;
    for (std::size_t i = 0; i < resumed.series.size(); ++i) {
        const auto same = expected.find(save_at + 1 + static_cast<int>(i));
        if (same == expected.end() || !resumed.series[i].loss) continue;
        got += *resumed.series[i].loss;
        wanted += same->second;
    }
    if (wanted == 0) return std::nullopt;
    return (got - wanted) / std::abs(wanted);
}

// Runs the job again from the checkpoint that its own run has left in the tree, for the updates that came after it.
Expected<CheckResult> run_resume(const ResumeCheck& check, const TrialSetup& setup, const AgentSpec& base,
                                 const AgentWait& wait, const Receipt& whole) {
    AgentSpec spec = check_spec(base, check.command.empty() ? base.command : check.command, "resume");
    Contract rest = *setup.contract;
    rest.launch.updates -= check.save_at;
    rest.launch.warmup = 0;
    spec.updates = rest.launch.updates;
    if (base.hook) spec.hook = HookSpec{base.hook->nonce, {}, 0, {}};
    INFRARSI_ASSIGN(CheckResult result, run_check(spec, setup, wait));
    Receipt resumed;
    if (auto read = read_trial_record(spec.out, rest, {}, resumed); !read) {
        if (result.note.empty()) result.note = read.error().describe();
        return result;
    }
    // The agent ends a job that has done its updates: that is the end that was wanted.
    if (resumed.execution.stopped == "after_updates") result.exit_code = 0;
    result.value = loss_deviation(whole, resumed, check.save_at);
    if (!result.value && result.note.empty()) {
        result.note = fmt::format("no update after update {} has a loss in both runs", check.save_at);
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
        INFRARSI_ASSIGN(CheckResult result, run_check(check_spec(base, rules.eval->command, "eval"), setup, wait));
        const auto output = read_file(base.out / "checks" / "eval" / "stdout.log");
        if (output) result.value = find_metric(*output, rules.eval->metric);
        if (!result.value && result.exit_code == 0) {
            result.note = fmt::format("its output states no number for '{}'; print a line such as {}=1.23",
                                      rules.eval->metric, rules.eval->metric);
        }
        receipt.eval = std::move(result);
    }
    if (rules.resume) {
        INFRARSI_ASSIGN(receipt.resume, run_resume(*rules.resume, setup, base, wait, receipt));
    }
    receipt.tests.clear();
    for (std::size_t i = 0; i < rules.tests.size(); ++i) {
        INFRARSI_ASSIGN(CheckResult result,
                        run_check(check_spec(base, rules.tests[i], fmt::format("test-{}", i + 1)), setup, wait));
        receipt.tests.push_back(std::move(result));
    }
    return {};
}

}  // namespace infrarsi
