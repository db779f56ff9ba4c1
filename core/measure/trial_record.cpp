#include "core/measure/trial_record.h"

#include <cmath>
#include <set>

#include "core/base/json.h"
#include "core/measure/hook_series.h"
#include "core/measure/job_output.h"
#include "core/measure/knob_effect.h"

#include <nlohmann/json.hpp>

namespace infrarsi {
namespace {

using nlohmann::json;

template <class T>
std::optional<T> field(const json& object, const char* key) {
    const auto it = object.find(key);
    if (it == object.end() || it->is_null()) {
        return std::nullopt;
    }
    return it->get<T>();
}

std::string text_or_empty(const json& object, const char* key) {
    return field<std::string>(object, key).value_or("");
}

void fill_execution(const json& agent, Receipt& receipt) {
    auto& execution = receipt.execution;
    execution.exit_code = field<int>(agent, "exit_code");
    execution.signal = field<int>(agent, "signal");
    execution.timed_out = text_or_empty(agent, "timed_out");
    execution.cancelled = field<bool>(agent, "cancelled").value_or(false);
    execution.stopped = text_or_empty(agent, "stopped");
    execution.wall_start_s = field<double>(agent, "wall_start_s").value_or(0);
    execution.wall_end_s = field<double>(agent, "wall_end_s").value_or(0);
    execution.duration_s = field<double>(agent, "duration_s").value_or(0);
    execution.error = text_or_empty(agent, "error");
    if (const auto cpu = agent.find("cpu"); cpu != agent.end() && cpu->is_object()) {
        execution.cpu_stall_s = field<double>(*cpu, "stall_s").value_or(0);
    }
    if (const auto sandbox = agent.find("sandbox"); sandbox != agent.end() && sandbox->is_object()) {
        receipt.isolation.sandbox = text_or_empty(*sandbox, "kind");
        receipt.isolation.network = text_or_empty(*sandbox, "network");
        receipt.isolation.frozen_readonly = field<bool>(*sandbox, "frozen_readonly").value_or(false);
        receipt.isolation.why = text_or_empty(*sandbox, "why");
    }
}

// What the driver says of a device counts before what a process says of itself: it includes contexts and libraries,
// and the job cannot reset it. The largest of a list of devices is the one that limits.
std::optional<double> largest(const json& value) {
    if (value.is_number()) {
        return value.get<double>();
    }
    std::optional<double> found;
    if (value.is_array() || value.is_object()) {
        for (const auto& item : value) {
            if (item.is_number() && (!found || item.get<double>() > *found)) {
                found = item.get<double>();
            }
        }
    }
    return found;
}

void fill_memory(const json& agent, Receipt& receipt) {
    if (const auto memory = agent.find("memory"); memory != agent.end() && memory->is_object()) {
        receipt.memory.peak_gib = field<double>(*memory, "peak_gib");
        receipt.memory.source = text_or_empty(*memory, "source");
        receipt.memory.cap_gib = field<double>(*memory, "cap_gib");
        if (const auto device = memory->find("device_peak_gib"); device != memory->end()) {
            if (const auto peak = largest(*device)) {
                receipt.memory.peak_gib = peak;
                receipt.memory.source = "nvidia-smi";
            }
        }
    }
    if (const auto oom = agent.find("oom"); oom != agent.end() && oom->is_object()) {
        OutOfMemory found;
        found.in_use_gib = field<double>(*oom, "in_use_gib").value_or(0);
        found.tried_gib = field<double>(*oom, "tried_gib").value_or(0);
        found.need_gib = field<double>(*oom, "need_gib").value_or(found.in_use_gib + found.tried_gib);
        found.line = text_or_empty(*oom, "line");
        receipt.oom = found;
        const auto kind = text_or_empty(*oom, "kind");
        receipt.failures.push_back({kind == "device" ? "oom_device" : "oom_host", found.line, "harness", 0, 0});
    }
}

Expected<json> read_agent(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) {
        return fail(ErrorKind::not_found, "{} is missing: the trial has not ended, or its agent was killed",
                    path.string());
    }
    auto agent = read_json(path);
    if (!agent) {
        return fail_at(ErrorKind::corrupt, {path.string()}, "the agent's result does not parse: {}",
                       agent.error().describe());
    }
    if (!agent->is_object() || agent->value("schema", "") != "infrarsi-agent-v1") {
        return fail_at(ErrorKind::unsupported, {path.string()}, "expected the schema infrarsi-agent-v1, found {}",
                       agent->is_object() ? agent->value("schema", "none") : "no object");
    }
    return agent;
}

// What to add to a printed step to get the update: scripts count from 0 or from 1, and a job that resumes from a
// checkpoint goes on from there. Then the first line stands for the first update.
std::int64_t step_shift(const JobOutput& output, const Receipt& receipt) {
    const std::int64_t first_step = output.lines.front().reading.step;
    const std::int64_t first_update = receipt.series.front().n;
    if (first_step == 0) {
        return first_update;
    }
    return first_step > receipt.series.back().n ? first_update - first_step : 0;
}

void match_own_lines(const JobOutput& output, Receipt& receipt) {
    if (output.lines.empty() || receipt.series.empty()) {
        return;
    }
    const auto shift = step_shift(output, receipt);
    std::map<std::int64_t, const JobLine*> by_update;
    for (const auto& line : output.lines) {
        by_update.try_emplace(line.reading.step + shift, &line);
    }
    for (auto& update : receipt.series) {
        const auto it = by_update.find(update.n);
        if (it == by_update.end()) {
            continue;
        }
        const auto& reading = it->second->reading;
        update.reported_s = reading.step_time_s;
        if (!update.loss) {
            update.loss = reading.loss;
        }
        if (!update.grad_norm) {
            update.grad_norm = reading.grad_norm;
        }
        if (!update.lr) {
            update.lr = reading.lr;
        }
    }
}

// Without the hook, a line that the job prints stands for its update, and the moment at which the agent saw it for its
// arrival.
void series_from_lines(const JobOutput& output, Receipt& receipt) {
    if (output.lines.empty()) {
        return;
    }
    const std::int64_t shift = output.lines.front().reading.step == 0 ? 1 : 0;
    std::int64_t last = 0;
    for (const auto& line : output.lines) {
        const auto n = line.reading.step + shift;
        if (n <= last || n > 1'000'000'000) {
            continue;
        }
        last = n;
        UpdateRecord update;
        update.n = static_cast<int>(n);
        update.t_s = line.t_s;
        update.loss = line.reading.loss;
        update.grad_norm = line.reading.grad_norm;
        update.lr = line.reading.lr;
        update.tokens = line.reading.tokens_per_update;
        update.reported_s = line.reading.step_time_s;
        receipt.series.push_back(std::move(update));
    }
}

void note_unclean_end(Receipt& receipt) {
    const auto& execution = receipt.execution;
    const auto add = [&](const char* failure_class, std::string text) {
        receipt.failures.push_back({failure_class, std::move(text), "harness", 0, execution.duration_s});
    };
    if (!execution.error.empty()) {
        add("environment", "the job could not be started: " + execution.error);
    }
    if (execution.timed_out == "wall") {
        add("timeout", "the time limit was reached");
    }
    if (execution.timed_out == "silence") {
        add("timeout", "no output and no update for the silence limit");
    }
    if (execution.signal && execution.stopped.empty() && execution.timed_out.empty() && !execution.cancelled) {
        add("killed", "ended by signal " + std::to_string(*execution.signal));
    }
}

}  // namespace

Expected<void> read_trial_record(const std::filesystem::path& trial_dir, const Contract& contract,
                                 const Settings& requested, Receipt& receipt) {
    INFRARSI_ASSIGN(const auto agent, read_agent(trial_dir / "agent.json"));
    try {
        fill_execution(agent, receipt);
        fill_memory(agent, receipt);
    } catch (const json::exception& error) {
        return fail_at(ErrorKind::corrupt, {(trial_dir / "agent.json").string()}, "a field has the wrong type: {}",
                       error.what());
    }
    INFRARSI_ASSIGN(auto hook, read_hook_series(trial_dir / "hook.jsonl"));
    INFRARSI_ASSIGN(auto output, read_job_output(trial_dir / "output.jsonl", contract.launch.stack));
    receipt.execution.world = std::max(1, hook.world);
    receipt.series = std::move(hook.series);
    receipt.model_digest = std::move(hook.model_digest);
    receipt.trainable_params = hook.trainable_params;
    receipt.param_dtypes = std::move(hook.param_dtypes);
    receipt.probes = std::move(hook.probes);
    receipt.audit = std::move(hook.audit);
    receipt.disturbed = std::move(hook.disturbed);
    if (receipt.series.empty()) {
        series_from_lines(output, receipt);
    } else {
        match_own_lines(output, receipt);
    }
    receipt.failures.insert(receipt.failures.end(), output.failures.begin(), output.failures.end());
    if (!receipt.oom) {
        receipt.oom = output.oom;
    }
    note_unclean_end(receipt);
    auto effect = knob_effect(contract, requested, hook.knobs);
    receipt.effective = std::move(effect.effective);
    receipt.ineffective = std::move(effect.ineffective);
    return {};
}

}  // namespace infrarsi
