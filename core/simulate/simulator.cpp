#include "core/simulate/simulator.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/simulate/evidence.h"
#include "core/simulate/oom_text.h"

namespace infrarsi::sim {

namespace {

void round_all(std::vector<double>& numbers) {
    for (double& number : numbers) number = round_to_nine_digits(number);
}

double sum_of(const std::vector<double>& numbers, std::size_t from = 0) {
    return std::accumulate(numbers.begin() + static_cast<std::ptrdiff_t>(from), numbers.end(), 0.0);
}

// The patch of the first attempt, in the file's order, that does not work.
std::optional<int> find_failure(const Workload& workload, std::uint64_t seed, const Request& request) {
    std::optional<int> failed;
    for (const PatchAttempt& attempt : request.attempts) {
        INFRARSI_CHECK(request.candidate.has_patch(attempt.patch), "an attempt is at a patch of the candidate");
        if (failed && *failed <= attempt.patch) continue;
        if (!attempt_works(workload, seed, attempt.patch, attempt.attempt, attempt.support)) failed = attempt.patch;
    }
    return failed;
}

}  // namespace

struct Simulator::Run {
    const Request& request;
    Truth truth;
    std::string repeat_text;
    Answer answer;

    [[nodiscard]] bool leaves_evidence() const {
        return answer.status == Outcome::completed || answer.status == Outcome::numeric;
    }
};

Simulator::Simulator(const Workload& workload, std::uint64_t seed)
    : workload_(workload), seed_(seed), seed_text_(std::to_string(seed)) {
    const Timing& timing = workload.timing;
    for (int u = 1; u <= workload.job.updates; ++u) {
        const double excess = timing.warmup_excess * std::pow(2.0, -(u - 1) / timing.warmup_half_life);
        warmup_.push_back(u <= workload.job.warmup ? 1 + excess : 1);
    }
}

Answer Simulator::answer(const Request& request) {
    Run run{request, truth(workload_, request.candidate), "", {}};
    Answer& answer = run.answer;
    answer.workload = workload_.name;
    answer.seed = seed_;
    answer.candidate = candidate_key(workload_, request.candidate);
    answer.index = request.index.value_or(last_index_ + 1);
    INFRARSI_CHECK(answer.index >= 0 && answer.index <= kLastIndex, "a trial's index is within its range");
    last_index_ = answer.index;
    std::int64_t& answered = answered_[answer.candidate];
    answer.repeat = request.repeat.value_or(answered);
    ++answered;
    run.repeat_text = std::to_string(answer.repeat);
    answer.updates_requested = request.updates.value_or(workload_.job.updates);
    INFRARSI_CHECK(answer.updates_requested >= 1 && answer.updates_requested <= workload_.job.updates,
                   "a trial has at least one update and at most the job's");
    answer.detail = request.detail;
    add_outcome(run);
    if (run.leaves_evidence()) {
        answer.updates_done = answer.updates_requested;
        add_step_times(run);
        if (request.detail == Detail::full) add_learning(run);
        apply_breaches(workload_, breaches(workload_, request.candidate), answer);
        for (auto* series : {&answer.step_times_s, &answer.reported_step_times_s, &answer.learning.loss,
                             &answer.learning.grad_norm, &answer.learning.learning_rate}) {
            round_all(*series);
        }
        add_memory(run);
        if (request.profile && answer.updates_done > workload_.job.warmup) add_profile(run);
    }
    add_text(run);
    add_costs(run);
    return std::move(run.answer);
}

double Simulator::drift(std::int64_t index) {
    const Noise& noise = workload_.noise;
    while (static_cast<std::int64_t>(drift_.size()) <= index) {
        RandomStream luck({workload_.name, seed_text_, "drift", std::to_string(drift_.size())});
        const double before = drift_.empty() ? 0 : drift_.back();
        drift_.push_back(noise.drift_coefficient * before + noise.drift_innovation * noise.sigma_pair * luck.normal());
    }
    return drift_[static_cast<std::size_t>(index)];
}

RandomStream Simulator::stream(const Run& run, std::string_view purpose) const {
    return RandomStream({workload_.name, seed_text_, purpose, run.answer.candidate, run.repeat_text});
}

const Simulator::Common& Simulator::common() {
    if (common_) return *common_;
    Common& common = common_.emplace();
    RandomStream data({workload_.name, seed_text_, "data"});
    for (int u = 1; u <= workload_.job.updates; ++u) {
        common.loss_noise.push_back(data.normal());
        common.grad_noise.push_back(data.normal());
        common.decay.push_back(std::pow(2.0, -(u - 1) / workload_.job.half_life));
        common.data_digest.push_back(evidence_digest(workload_, fmt::format("data|{}", u), "", kDataDigits));
    }
    common.evidence.model_digest = evidence_digest(workload_, "model", "", kModelDigits);
    common.evidence.parameters = workload_.job.parameters;
    common.evidence.dtypes = workload_.job.dtypes;
    for (const std::string& path : workload_.job.frozen) {
        common.evidence.frozen[path] = evidence_digest(workload_, "frozen|" + path, "", kFrozenDigits);
    }
    return common;
}

void Simulator::add_outcome(Run& run) const {
    Answer& answer = run.answer;
    answer.failed_patch = find_failure(workload_, seed_, run.request);
    answer.status = answer.failed_patch ? Outcome::crash : run.truth.outcome;
    answer.timed_out = answer.status == Outcome::hang;
    answer.exit_code = run.leaves_evidence() ? 0 : answer.timed_out ? -9 : 1;
}

void Simulator::add_step_times(Run& run) {
    const Job& job = workload_.job;
    const Noise& noise = workload_.noise;
    const int window = job.updates - job.warmup;
    RandomStream luck = stream(run, "time");
    const double shift = luck.normal();
    const double stall_luck = luck.uniform();
    const double stall_size = luck.uniform();
    const double stall_place = luck.uniform();
    // Split so that ln of the ratio of two window means has sd sigma_pair, drift apart.
    const double level = drift(run.answer.index) + noise.sigma_pair * std::sqrt((1 - noise.within_run) / 2) * shift;
    const double spread = noise.sigma_pair * std::sqrt(noise.within_run * window / 2);
    const double usual_s = job.step_time_s * run.truth.rel_time;
    std::vector<double>& times = run.answer.step_times_s;
    for (int u = 1; u <= run.answer.updates_done; ++u) {
        times.push_back(usual_s * std::exp(level + spread * luck.normal()) * warmup_[static_cast<std::size_t>(u - 1)]);
    }
    const auto stalled = static_cast<std::size_t>(job.warmup + static_cast<int>(std::floor(stall_place * window)));
    if (stall_luck < noise.stall_probability && stalled < times.size()) {
        times[stalled] +=
            window * usual_s * std::exp(level) * noise.stall_scale * std::pow(stall_size, -1 / noise.stall_index);
    }
    times.front() += run.truth.first_update_s;
    run.answer.reported_step_times_s = times;
}

void Simulator::add_learning(Run& run) {
    const Job& job = workload_.job;
    const Common& shared = common();
    LearningRecord& learning = run.answer.learning;
    RandomStream luck = stream(run, "loss");
    const auto value = [&](const LearningSeries& series, std::size_t i, double data) {
        return (series.floor + (series.initial - series.floor) * shared.decay[i]) * (1 + series.data_noise * data) *
               (1 + series.rounding * luck.normal());
    };
    for (int u = 1; u <= run.answer.updates_done; ++u) {
        const auto i = static_cast<std::size_t>(u - 1);
        learning.loss.push_back(value(job.loss, i, shared.loss_noise[i]));
        learning.grad_norm.push_back(value(job.grad_norm, i, shared.grad_noise[i]));
        const double ramp = u < job.warmup ? static_cast<double>(u) / job.warmup : 1;
        learning.learning_rate.push_back(job.learning_rate * ramp);
        learning.optimizer_steps.push_back(u);
        learning.tokens.push_back(job.tokens_per_update);
        learning.sequence_length.push_back(job.sequence_length);
        learning.data_digest.push_back(shared.data_digest[i]);
    }
    run.answer.evidence = shared.evidence;
    if (run.answer.status == Outcome::numeric) add_divergence(run, learning);
}

void Simulator::add_divergence(const Run& run, LearningRecord& learning) const {
    constexpr int kLoudUpdates = 4;  // then it is no number any more
    RandomStream luck = stream(run, "diverge");
    const int first = 1 + static_cast<int>(std::floor(0.6 * workload_.job.updates * luck.uniform()));
    for (int u = first; u <= run.answer.updates_done; ++u) {
        const auto i = static_cast<std::size_t>(u - 1);
        const bool is_number = u < first + kLoudUpdates;
        learning.loss[i] *= is_number ? std::pow(2.0, u - first + 1) : std::numeric_limits<double>::quiet_NaN();
        learning.grad_norm[i] *= is_number ? std::pow(4.0, u - first + 1) : std::numeric_limits<double>::quiet_NaN();
    }
}

void Simulator::add_memory(Run& run) const {
    RandomStream luck = stream(run, "memory");
    const double capacity = workload_.device.capacity_gib;
    const double need = run.truth.memory_gib;
    const double peak = std::min(capacity, need * (1 + workload_.memory.reading_noise * luck.normal()));
    const double reserved = peak - workload_.device.context_gib;
    const double allocated = reserved * (1 - 0.005 - 0.025 * luck.uniform());
    MemoryReading& reading = run.answer.memory.emplace();
    reading.peak_gib = round_to_nine_digits(peak);
    reading.reserved_gib = round_to_nine_digits(reserved);
    reading.allocated_gib = round_to_nine_digits(allocated);
    const double low = slow_from_gib(workload_);
    if (low < need && need <= capacity) {
        reading.alloc_retries = 1 + static_cast<std::int64_t>(std::floor(20 * (need - low) / (capacity - low)));
    }
}

void Simulator::add_profile(Run& run) const {
    // Not the candidate's stream: averaging runs must not remove the profiler's bias.
    RandomStream luck({workload_.name, seed_text_, "profile"});
    PerPhase measured{};
    double sum = 0;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
        measured[p] = run.truth.phases[p] * std::exp(0.2 * luck.normal());
        sum += measured[p];
    }
    const auto warmup = static_cast<std::size_t>(workload_.job.warmup);
    const std::vector<double>& times = run.answer.step_times_s;
    const double window_mean_s = sum_of(times, warmup) / static_cast<double>(times.size() - warmup);
    for (double& phase : measured) phase *= sum > 0 ? window_mean_s / sum : 0;
    const auto of = [&](Phase phase) { return measured[static_cast<std::size_t>(phase)]; };
    const double computing = of(Phase::matmul) + of(Phase::attention) + of(Phase::elementwise) + of(Phase::host);
    Profile& profile = run.answer.profile.emplace();
    for (std::size_t p = 0; p < kPhaseCount; ++p) profile.operator_s[p] = round_to_nine_digits(measured[p]);
    profile.forward_s = round_to_nine_digits(computing / 3);
    profile.backward_s = round_to_nine_digits(2 * computing / 3 + of(Phase::recompute));
    profile.collectives_s = round_to_nine_digits(of(Phase::communication));
    profile.optimizer_s = round_to_nine_digits(of(Phase::optimizer));
    profile.data_s = round_to_nine_digits(of(Phase::data));
}

void Simulator::add_text(Run& run) const {
    Answer& answer = run.answer;
    if (answer.failed_patch) {
        const std::string& id = workload_.patches[static_cast<std::size_t>(*answer.failed_patch)].id;
        answer.stderr_text = fmt::format(
            "Traceback (most recent call last):\n  File \"patched/{0}.py\", line 1, in apply\nRuntimeError: patch {0} "
            "does not run",
            id);
    } else if (answer.status == Outcome::oom) {
        RandomStream luck = stream(run, "oom");
        answer.stderr_text = out_of_memory_text(workload_, run.truth.memory_gib, luck);
    } else if (run.truth.conflict >= 0) {
        answer.stderr_text = workload_.conflicts[static_cast<std::size_t>(run.truth.conflict)].text;
    }
}

void Simulator::add_costs(Run& run) const {
    const Costs& costs = workload_.costs;
    const Job& job = workload_.job;
    Answer& answer = run.answer;
    const double part =
        costs.startup_share + (1 - costs.startup_share) * answer.updates_requested / static_cast<double>(job.updates);
    double wall_s = workload_.timing.startup_s;
    double units = 0;
    if (run.leaves_evidence()) {
        const auto warmup = static_cast<std::size_t>(job.warmup);
        const std::vector<double>& times = answer.step_times_s;
        wall_s += sum_of(times);
        units = part;
        if (times.size() > warmup) {
            units *= sum_of(times, warmup) / static_cast<double>(times.size() - warmup) / job.step_time_s;
        }
    } else if (answer.failed_patch) {
        units = costs.patch_failed;
    } else if (answer.status == Outcome::oom) {
        wall_s += run.truth.first_update_s + job.step_time_s;
        units = costs.oom;
    } else if (answer.status == Outcome::crash) {
        wall_s += run.truth.first_update_s / 2;
        units = costs.crash;
    } else {
        double factors = 0;
        for (int u = 0; u < answer.updates_requested; ++u) factors += warmup_[static_cast<std::size_t>(u)];
        wall_s = workload_.timing.hang_timeout * (wall_s + job.step_time_s * factors);
        units = costs.hang * part;
    }
    answer.wall_s = round_to_nine_digits(wall_s);
    answer.gpu_hours = round_to_nine_digits(wall_s * workload_.device.count / 3600);
    answer.cost_units = round_to_nine_digits(units);
}

}  // namespace infrarsi::sim
