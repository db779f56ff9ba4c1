// doctor: runs the reference, and says how noisy it is and what of the contract can be checked (DESIGN §6, §7.2).

#include <nlohmann/json.hpp>

#include "core/campaign/impl.h"
#include "core/campaign/unusable_reference.h"
#include "core/measure/window.h"
#include "core/verify/loss_power.h"

namespace infrarsi {

using nlohmann::json;

namespace {

constexpr double kFirstTimeoutS = 4 * 3600;
constexpr double kSilenceS = 900;

PhaseShares shares_of(const WindowStats& stats) {
    PhaseShares shares;
    if (!stats.has_phases || stats.mean_s <= 0) return shares;
    const PhaseTimes& times = stats.phases;
    const double total =
        std::max(stats.mean_s, times.forward + times.backward + times.optimizer + times.data + times.other);
    shares = {times.forward / total, times.backward / total, times.optimizer / total,
              times.data / total,    times.other / total,    true};
    return shares;
}

std::vector<std::string> coverage_of(const Verdict& verdict) {
    std::vector<std::string> lines;
    for (const auto& result : verdict.results) {
        const bool checked = result.status == Status::pass || result.status == Status::fail;
        lines.push_back(fmt::format("{}: {}", to_string(result.id),
                                    checked                             ? "checked"
                                    : result.status == Status::reported ? "reported, " + result.evidence
                                    : result.remedy.empty()             ? "not checked"
                                                                        : "not checked: " + result.remedy));
    }
    return lines;
}

// The figures of the runs, without the noise of the pairs.
Expected<DoctorResult> summary_of(const std::vector<Receipt>& runs, const Launch& launch) {
    DoctorResult doctor;
    double log_mean = 0, log_median = 0;
    for (const auto& run : runs) {
        const auto stats = window_stats(run);
        if (!stats || stats->mean_s <= 0) {
            return fail(
                ErrorKind::unsupported,
                "the reference has no update in its timing window: launch.updates ({}) must exceed launch.warmup "
                "({}) by a few",
                launch.updates, launch.warmup);
        }
        log_mean += std::log(stats->mean_s);
        log_median += std::log(stats->median_s);
        doctor.reference_gib = std::max(doctor.reference_gib, run.memory.peak_gib.value_or(0));
        doctor.run_s = std::max(doctor.run_s, run.execution.duration_s);
        doctor.phases = shares_of(*stats);
        if (!doctor.loss_mean) doctor.loss_mean = stats->loss_mean;
    }
    doctor.reference_s = std::exp(log_mean / static_cast<double>(runs.size()));
    doctor.reference_median_s = std::exp(log_median / static_cast<double>(runs.size()));
    return doctor;
}

}  // namespace

Expected<std::vector<Receipt>> Campaign::Impl::run_references() {
    std::vector<Receipt> runs;
    const int wanted = std::max(1, options.reference_runs);
    for (int attempt = 1, failed = 0; static_cast<int>(runs.size()) < wanted; ++attempt) {
        TrialRecord trial;
        trial.id = fmt::format("ref-{}", attempt);
        trial.role = "reference";
        trial.op = "reference";
        trial.reason = "the unchanged job";
        INFRARSI_ASSIGN(trial, run_one(trial, services.interrupts->search()));
        if (trial.cancelled) {
            INFRARSI_TRY(record("interrupted", {{"stage", "reference"}}));
            return fail(ErrorKind::cancelled,
                        "stopped before the reference was measured; `infrarsi run --resume {}` goes on from here",
                        state.run_dir.string());
        }
        INFRARSI_ASSIGN(Receipt receipt, load_receipt(state.run_dir, trial, services.key));
        if (trial.outcome == OutcomeKind::valid) {
            runs.push_back(std::move(receipt));
            continue;
        }
        // One bad run of a job that ran before, or one that the host broke, is the host's; two are the job's.
        const bool is_hosts = trial.outcome == OutcomeKind::transient || !runs.empty();
        if (++failed > 1 || !is_hosts) return Unexpected(unusable_reference(trial, receipt, setup));
    }
    return runs;
}

Expected<void> Campaign::measure_reference() {
    Impl& impl = *impl_;
    if (impl.state.doctor) return {};
    impl.services.observer->stage("doctor", "measuring the unchanged job", impl.state);
    impl.setup.timeout_s = impl.contract.launch.timeout_s.value_or(kFirstTimeoutS);
    impl.setup.silence_s = std::min(kSilenceS, impl.setup.timeout_s);
    INFRARSI_ASSIGN(const std::vector<Receipt> runs, impl.run_references());
    INFRARSI_ASSIGN(DoctorResult doctor, summary_of(runs, impl.contract.launch));
    doctor.noise = estimate_noise(runs);
    doctor.gate = search_gate(doctor.noise);
    INFRARSI_ASSIGN(ReferenceEvidence evidence, load_evidence(impl.state, impl.services.key));
    evidence.noise = doctor.noise;
    doctor.loss_power = loss_power(evidence, impl.contract.invariants).sentence;
    doctor.coverage = coverage_of(judge(runs.back(), evidence, impl.contract.invariants));
    INFRARSI_TRY(impl.record("doctor_finished", {{"doctor", to_json(doctor)}}));
    impl.services.observer->stage("doctor",
                                  fmt::format("{:.3f} s an update, noise {:.1f} % a pair, search gate {:.1f} %",
                                              doctor.reference_s, 100 * doctor.noise.sigma_pair, 100 * doctor.gate),
                                  impl.state);
    return {};
}

}  // namespace infrarsi
