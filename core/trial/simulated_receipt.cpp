#include "core/trial/simulated_receipt.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/measure/failure_scan.h"

namespace infrarsi {

namespace {

// Calls in an update that the shares of the census are out of; a share of one in ten thousand is still a call.
constexpr double kCensusCalls = 10'000;

void add_execution(const sim::Workload& workload, const sim::Answer& answer, Receipt& receipt) {
    Execution& run = receipt.execution;
    if (answer.exit_code < 0) {
        run.signal = -answer.exit_code;
    } else {
        run.exit_code = answer.exit_code;
    }
    if (answer.timed_out) run.timed_out = "wall";
    run.duration_s = answer.wall_s;
    run.world = workload.device.count;
    receipt.isolation = {"none", "none", false, "a simulated job touches nothing"};
}

void add_series(const sim::Workload& workload, const sim::Answer& answer, Receipt& receipt) {
    const sim::LearningRecord& learning = answer.learning;
    double arrival_s = workload.timing.startup_s;
    receipt.series.reserve(answer.step_times_s.size());
    for (std::size_t i = 0; i < answer.step_times_s.size(); ++i) {
        arrival_s += answer.step_times_s[i];
        UpdateRecord& update = receipt.series.emplace_back();
        update.n = static_cast<int>(i) + 1;
        update.t_s = arrival_s;
        update.reported_s = answer.reported_step_times_s[i];
        update.tokens = learning.tokens[i];
        update.seq_len = learning.sequence_length[i];
        update.data = learning.data_digest[i];
        update.loss = learning.loss[i];
        update.grad_norm = learning.grad_norm[i];
        update.lr = learning.learning_rate[i];
        update.opt_steps = learning.optimizer_steps[i];
    }
}

void add_evidence(const sim::Workload& workload, const sim::Answer& answer, Receipt& receipt) {
    receipt.memory.cap_gib = workload.device.capacity_gib;
    receipt.memory.source = "simulated";
    if (answer.memory) receipt.memory.peak_gib = answer.memory->peak_gib;
    if (!answer.evidence) return;
    receipt.model_digest = answer.evidence->model_digest;
    receipt.trainable_params = answer.evidence->parameters;
    receipt.frozen_before = receipt.frozen_after = answer.evidence->frozen;
    receipt.audit.emplace().n = 1;
    std::map<std::string, int>& calls = receipt.audit->matmul["all"];
    for (const auto& [dtype, share] : answer.evidence->dtypes) {
        if (share > 0) calls[dtype] = std::max(1, static_cast<int>(std::lround(kCensusCalls * share)));
    }
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

// As the harness reads the output of a real job: each class once, and the numbers of a failed allocation.
void add_failures(const sim::Answer& answer, Receipt& receipt) {
    std::set<std::string> seen;
    int number = 0;
    for (const std::string_view line : lines_of(answer.stderr_text)) {
        ++number;
        auto failure = scan_failure(line);
        if (!failure) continue;
        failure->stream = "stderr";
        failure->line = number;
        failure->t_s = answer.wall_s;
        if (failure->failure_class.starts_with("oom_") && !receipt.oom) receipt.oom = read_out_of_memory(line);
        if (seen.insert(failure->failure_class).second) receipt.failures.push_back(std::move(*failure));
    }
}

// The contract's names for what the menu of a workload lists.
std::string menu_name(const std::string& dtype) {
    static const std::map<std::string, std::string> names = {
        {"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}, {"float8_e4m3fn", "fp8"}};
    const auto found = names.find(dtype);
    return found == names.end() ? dtype : found->second;
}

Knob knob_of(const sim::Knob& simulated) {
    Knob knob;
    knob.name = simulated.name;
    knob.spelling = "--" + simulated.name;
    std::replace(knob.spelling.begin(), knob.spelling.end(), '_', '-');
    for (const sim::KnobValue& each : simulated.values) {
        if (each.is_legal) knob.values.push_back(each.value);
    }
    knob.reference = simulated.values[static_cast<std::size_t>(simulated.reference)].value;
    knob.mechanism = simulated.mechanism.value_or("");
    return knob;
}

}  // namespace

Candidate simulated_candidate(const sim::Workload& workload, const sim::Candidate& candidate) {
    Candidate named;
    named.settings = sim::settings_of(workload, candidate);
    for (const std::string& id : sim::patches_of(workload, candidate)) {
        named.patches.push_back({id, "simulated patch " + id, "simulated"});
    }
    return named;
}

Receipt simulated_receipt(const sim::Workload& workload, const sim::Candidate& candidate, const sim::Answer& answer) {
    INFRARSI_CHECK(answer.detail == sim::Detail::full, "a receipt needs an answer with its evidence");
    Receipt receipt;
    receipt.harness = INFRARSI_VERSION;
    receipt.campaign = fmt::format("{} seed {}", answer.workload, answer.seed);
    receipt.trial = fmt::format("{}", answer.index);
    receipt.role = "candidate";
    receipt.candidate = simulated_candidate(workload, candidate);
    receipt.updates = answer.updates_requested;
    receipt.warmup = workload.job.warmup;
    receipt.environment = {{"gpu", workload.device.model}, {"simulated", answer.workload}};
    add_execution(workload, answer, receipt);
    add_series(workload, answer, receipt);
    add_evidence(workload, answer, receipt);
    add_failures(answer, receipt);
    return receipt;
}

Contract simulated_contract(const sim::Workload& workload) {
    Contract contract;
    contract.name = workload.name;
    contract.launch.command = "simulate";
    contract.launch.gpus_per_node = workload.device.count / workload.device.nodes;
    contract.launch.nodes = workload.device.nodes;
    contract.launch.updates = workload.job.updates;
    contract.launch.warmup = workload.job.warmup;
    for (const sim::Knob& knob : workload.knobs) contract.knobs.push_back(knob_of(knob));
    contract.frozen = workload.job.frozen;
    contract.invariants.tolerance = 0.03;
    for (const std::string& dtype : workload.job.precision_menu) {
        contract.invariants.precision_menu.push_back(menu_name(dtype));
    }
    contract.invariants.memory_cap_gib = workload.device.capacity_gib;
    contract.invariants.strict = true;
    contract.target = "simulate";
    contract.targets = {{"simulate", "simulate", {}}};
    return contract;
}

Receipt first_updates(const Receipt& receipt, int n) {
    INFRARSI_CHECK(n >= 1, "a run has at least one update");
    Receipt cut = receipt;
    if (receipt.updates <= n) return cut;
    cut.updates = n;
    const auto is_later = [n](const auto& record) { return record.n > n; };
    std::erase_if(cut.series, is_later);
    std::erase_if(cut.probes, is_later);
    std::erase_if(cut.disturbed, [n](int update) { return update > n; });
    if (cut.audit && cut.audit->n > n) cut.audit.reset();
    cut.eval.reset();
    cut.resume.reset();
    cut.tests.clear();
    // A run that ended before update n did not become a good one by being cut; one that got there would have been
    // stopped there, whatever came later.
    if (cut.series.empty() || cut.series.back().n < n) return cut;
    const double last_s = cut.series.back().t_s;
    std::erase_if(cut.failures, [last_s](const FailureLine& line) { return line.t_s > last_s; });
    const bool is_out_of_memory = std::any_of(cut.failures.begin(), cut.failures.end(), [](const FailureLine& line) {
        return line.failure_class.starts_with("oom_");
    });
    if (!is_out_of_memory) cut.oom.reset();
    Execution& run = cut.execution;
    run.stopped = "after_updates";
    run.exit_code.reset();
    run.signal.reset();
    run.timed_out.clear();
    run.cancelled = false;
    if (run.wall_start_s > 0) run.wall_end_s -= run.duration_s - last_s;
    run.duration_s = last_s;
    return cut;
}

}  // namespace infrarsi
