// Running one trial of a campaign and saying what came of it.

#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/campaign/impl.h"
#include "core/measure/window.h"

namespace infrarsi {

using nlohmann::json;

namespace {

// The host's fault: it says nothing about the candidate, is charged, and may be tried again.
bool is_transient(const Receipt& receipt) {
    return !receipt.execution.error.empty() && receipt.series.empty() && !receipt.oom;
}

// The unchanged job is what it is: items that nobody can check do not make it invalid, only failed ones do. A run
// without a single update shows nothing, though, whatever its exit code.
bool stands(const Receipt& receipt, const Verdict& verdict) {
    if (!receipt.candidate.is_reference()) return verdict.valid;
    if (receipt.series.empty()) return false;
    return std::none_of(verdict.results.begin(), verdict.results.end(),
                        [](const InvariantResult& result) { return result.status == Status::fail; });
}

OutcomeKind classify(const Receipt& receipt, const Verdict& verdict) {
    if (is_transient(receipt)) return OutcomeKind::transient;
    if (receipt.oom) return OutcomeKind::oom;
    if (verdict[InvariantId::completes].status == Status::fail ||
        verdict[InvariantId::no_errors].status == Status::fail) {
        return OutcomeKind::failed;
    }
    if (!receipt.ineffective.empty()) return OutcomeKind::ineffective;
    return stands(receipt, verdict) ? OutcomeKind::valid : OutcomeKind::rejected;
}

// A candidate that cannot even be made into files: refused before it costs anything.
bool refuses_candidate(ErrorKind kind) {
    return kind == ErrorKind::frozen || kind == ErrorKind::conflict || kind == ErrorKind::invalid_input ||
           kind == ErrorKind::unsupported;
}

}  // namespace

Expected<Receipt> load_receipt(const std::filesystem::path& run_dir, const TrialRecord& trial, std::string_view key) {
    const auto path = run_dir / "trials" / trial.id / "receipt.json";
    INFRARSI_ASSIGN(const std::string text, read_file(path));
    if (!trial.receipt_digest.empty() && sha256_hex(text) != trial.receipt_digest) {
        return fail(ErrorKind::corrupt, "{} is not the receipt that the journal recorded: it was changed afterwards",
                    path.string());
    }
    return open_receipt(text, key, path.string());
}

Expected<ReferenceEvidence> load_evidence(const CampaignState& state, std::string_view key) {
    ReferenceEvidence evidence;
    bool first = true;
    for (const auto& trial : state.trials) {
        if (trial.role != "reference" || !trial.finished || trial.cancelled || trial.outcome != OutcomeKind::valid)
            continue;
        INFRARSI_ASSIGN(Receipt receipt, load_receipt(state.run_dir, trial, key));
        if (first) {
            evidence.reference = std::move(receipt);
        } else {
            evidence.repeats.push_back(std::move(receipt));
        }
        first = false;
    }
    if (first) return fail(ErrorKind::not_found, "the reference has not been measured yet");
    if (state.doctor) evidence.noise = state.doctor->noise;
    return evidence;
}

namespace {

// The checks after a run hold the machine as the run does.
void take_cost(TrialRecord& trial, const Receipt& receipt) {
    trial.cost_s = receipt.execution.duration_s;
    for (const auto* check : {&receipt.eval, &receipt.resume}) {
        if (*check) trial.cost_s += (*check)->duration_s;
    }
    for (const CheckResult& test : receipt.tests) trial.cost_s += test.duration_s;
    trial.device_s = trial.cost_s * std::max(1, receipt.execution.world);
}

}  // namespace

Expected<void> Campaign::Impl::complete(TrialRecord& trial, const Receipt& receipt) {
    trial.finished = true;
    trial.cancelled = receipt.execution.cancelled;
    take_cost(trial, receipt);
    trial.peak_gib = receipt.memory.peak_gib;
    if (receipt.oom) trial.need_gib = receipt.oom->need_gib;
    trial.notes = receipt.ineffective;
    const auto stats = window_stats(receipt);
    if (stats) {
        trial.mean_s = stats->mean_s;
        trial.median_s = stats->median_s;
    }
    if (trial.cancelled) {
        trial.outcome = OutcomeKind::transient;
        trial.verdict_reason = "stopped before it ended";
        return {};
    }
    // The first reference can only be judged against itself: it must run, and run clean.
    auto against = load_evidence(state, services.key);
    ReferenceEvidence own;
    own.reference = receipt;
    if (state.doctor) own.noise = state.doctor->noise;
    const Verdict verdict = judge(receipt, against ? *against : own, contract.invariants);
    trial.outcome = classify(receipt, verdict);
    if (trial.outcome != OutcomeKind::valid) {
        for (const InvariantId id : verdict.rejecting(contract.invariants)) {
            trial.failed_invariants.emplace_back(to_string(id));
        }
    }
    if (trial.outcome == OutcomeKind::transient) {
        trial.verdict_reason = receipt.execution.error;
    } else if (trial.outcome == OutcomeKind::oom) {
        trial.verdict_reason =
            fmt::format("out of memory: it needs at least {:.3f} GiB{}", receipt.oom->need_gib,
                        receipt.memory.cap_gib
                            ? fmt::format(", {:.3f} GiB over the cap", receipt.oom->need_gib - *receipt.memory.cap_gib)
                            : "");
    } else if (trial.outcome == OutcomeKind::ineffective) {
        trial.verdict_reason = receipt.ineffective.front();
    } else if (trial.outcome != OutcomeKind::valid) {
        trial.verdict_reason = verdict.reason.empty() ? "no optimizer update was seen" : verdict.reason;
        // What the job itself said is nearer to the cause than its exit code.
        if (trial.outcome == OutcomeKind::failed && !receipt.failures.empty()) {
            trial.verdict_reason += fmt::format(" ({}: {})", receipt.failures.front().failure_class,
                                                receipt.failures.front().text.substr(0, 160));
        }
        // Every further item that failed is named too; items that a failed run left unchecked say nothing of their own.
        for (const InvariantId id : verdict.rejecting(contract.invariants)) {
            const bool said = verdict.reason.starts_with(to_string(id)) || id == InvariantId::no_errors;
            if (said || verdict[id].status != Status::fail) continue;
            trial.verdict_reason += fmt::format("; {}: {}", to_string(id), verdict[id].evidence);
        }
    }
    if (trial.outcome == OutcomeKind::valid && state.doctor && trial.median_s > 0) {
        trial.log_speedup = std::log(state.doctor->reference_median_s / trial.median_s);
    }
    return {};
}

Expected<TrialRecord> Campaign::Impl::run_one(TrialRecord trial, std::stop_token stop) {
    if (const TrialRecord* known = state.trial(trial.id); known && known->finished && !known->cancelled) return *known;
    if (const TrialRecord* known = state.trial(trial.id); !known || known->cancelled) {
        INFRARSI_TRY(record("trial_started", {{"trial", to_json(trial)}}));
    }
    services.observer->trial_started(trial, state);
    TrialRequest request{trial.id, trial.role, trial.candidate};
    auto receipt =
        run_trial(setup, request, *services.target, *services.clock, services.key, stop,
                  [&](const TrialProgress& progress) { services.observer->trial_progress(trial, progress, state); });
    if (receipt) {
        INFRARSI_ASSIGN(const std::string text, read_file(state.run_dir / "trials" / trial.id / "receipt.json"));
        trial.receipt_digest = sha256_hex(text);
        INFRARSI_TRY(complete(trial, *receipt));
    } else if (receipt.error().kind() == ErrorKind::cancelled) {
        trial.finished = true;
        trial.cancelled = true;
        trial.outcome = OutcomeKind::transient;
        trial.verdict_reason = "stopped before it ended";
        if (auto written = load_receipt(state.run_dir, trial, services.key)) {
            take_cost(trial, *written);
        }
    } else if (!trial.candidate.is_reference() && refuses_candidate(receipt.error().kind())) {
        trial.finished = true;
        trial.outcome = OutcomeKind::rejected;
        trial.verdict_reason = receipt.error().describe();
        if (receipt.error().kind() == ErrorKind::frozen) trial.failed_invariants = {"frozen_files"};
    } else if (receipt.error().kind() == ErrorKind::resource) {
        return fail(ErrorKind::resource, "{}; free some space, then `infrarsi run --resume {}` goes on from here",
                    receipt.error().describe(), state.run_dir.string());
    } else {
        return Unexpected(std::move(receipt).error());
    }
    INFRARSI_TRY(record("trial_finished", {{"trial", to_json(trial)}}));
    services.observer->trial_finished(trial, state);
    return trial;
}

}  // namespace infrarsi
