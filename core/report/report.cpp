#include "core/report/report.h"

#include "core/verify/verdict.h"

namespace infrarsi {

namespace {

// Text inside a table cell.
std::string cell(std::string text) {
    std::string out;
    for (const char c : text) {
        if (c == '|')
            out += "\\|";
        else if (c == '\n')
            out += ' ';
        else
            out += c;
    }
    return out;
}

std::string hours(double seconds) {
    return seconds < 3600 ? fmt::format("{:.1f} min", seconds / 60) : fmt::format("{:.2f} h", seconds / 3600);
}

std::string gib(const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value) : "–";
}

std::string headline(const CampaignState& state) {
    if (!state.result) return "This run has not finished: `infrarsi finish` re-verifies its best candidates.\n";
    const CampaignResult& result = *state.result;
    if (!result.promoted) {
        return fmt::format("**Delivered: 1.00×.** The job stays as it is: {}.\n", result.reason);
    }
    return fmt::format(
        "**Delivered: {:.2f}×** ({:.2f}× to {:.2f}×, one-sided 95 % bounds), measured in a fresh re-run, back to back "
        "with the "
        "unchanged job.\n\nRecommended: `{}`.\n",
        result.speedup, result.low, result.high, result.candidate.describe());
}

std::string reference_section(const CampaignState& state) {
    if (!state.doctor) return {};
    const DoctorResult& doctor = *state.doctor;
    std::string text = "## The unchanged job\n\n";
    text += fmt::format("- {:.4f} s an update (window mean of {} runs)\n", doctor.reference_s, doctor.noise.runs);
    text += fmt::format("- noise of a back-to-back pair: σ = {:.2f} % (from {}, {:.0f} degrees of freedom){}\n",
                        100 * doctor.noise.sigma_pair, doctor.noise.winner, doctor.noise.degrees,
                        doctor.noise.drifting ? "; the step time drifts within a run" : "");
    text += fmt::format("- a search result counts as faster above {:.1f} %\n", 100 * doctor.gate);
    if (doctor.reference_gib > 0) text += fmt::format("- peak memory: {:.2f} GiB a device\n", doctor.reference_gib);
    if (doctor.phases.known) {
        text += fmt::format(
            "- where the time goes: forward {:.0f} %, backward {:.0f} %, optimizer {:.0f} %, data {:.0f} %, other "
            "{:.0f} %\n",
            100 * doctor.phases.forward, 100 * doctor.phases.backward, 100 * doctor.phases.optimizer,
            100 * doctor.phases.data, 100 * doctor.phases.other);
    }
    text += "- " + doctor.loss_power + "\n\n";
    return text;
}

std::string promotion_section(const CampaignState& state) {
    if (state.promotions.empty()) return {};
    std::string text =
        "## Fresh re-runs\n\n| finalist | what | blocks | gain | bounds | verdict |\n| --- | --- | --- | --- | --- | "
        "--- |\n";
    for (const auto& promotion : state.promotions) {
        const GainEstimate& gain = promotion.gain;
        text += fmt::format("| {} | {} | {} | {:.2f}× | {:.2f}× – {:.2f}× | {}: {} |\n", promotion.trial,
                            cell(promotion.candidate.describe()), gain.pairs, gain.speedup, std::exp(gain.low),
                            std::exp(gain.high), to_string(promotion.decision), cell(promotion.reason));
    }
    return text + "\nA block is reference, candidate, candidate, reference, each in a fresh process.\n\n";
}

std::string verdict_of(const TrialRecord& trial) {
    if (trial.cancelled) return "stopped before it ended";
    if (trial.outcome == OutcomeKind::valid) return "valid";
    std::string names;
    for (const auto& name : trial.failed_invariants) names += (names.empty() ? "" : ", ") + name;
    return fmt::format("{}{}: {}", to_string(trial.outcome), names.empty() ? "" : " [" + names + "]",
                       trial.verdict_reason);
}

std::string trial_section(const CampaignState& state) {
    std::string text =
        "## Every trial and what it cost\n\n| trial | what | why | s/update | search gain | GiB | cost | verdict |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    const auto add = [&text](const TrialRecord& trial) {
        if (!trial.finished) return;
        const bool scored = trial.role == "candidate" && trial.outcome == OutcomeKind::valid && !trial.cancelled;
        text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", trial.id, cell(trial.candidate.describe()),
                            cell(trial.reason), trial.mean_s > 0 ? fmt::format("{:.4f}", trial.mean_s) : "–",
                            scored ? fmt::format("{:.2f}×", std::exp(trial.log_speedup)) : "–",
                            trial.need_gib ? fmt::format("≥ {:.2f}", *trial.need_gib) : gib(trial.peak_gib),
                            hours(trial.cost_s), cell(verdict_of(trial)));
    };
    for (const auto& trial : state.stopped) add(trial);
    for (const auto& trial : state.trials) add(trial);
    return text + "\nThe search gain chose what to re-test; it is biased upward and is not the result.\n\n";
}

std::string ledger_section(const CampaignState& state) {
    std::string text =
        "## Cost\n\n| stage | runs | of these failed, rejected or stopped | wall time | device hours |\n| --- | --- | "
        "--- | --- | --- |\n";
    double wall_s = 0, device_s = 0;
    int runs = 0, failed = 0;
    for (const auto& cost : state.ledger()) {
        text += fmt::format("| {} | {} | {} | {} | {:.3f} |\n", cost.stage, cost.runs, cost.failed, hours(cost.wall_s),
                            cost.device_s / 3600);
        wall_s += cost.wall_s;
        device_s += cost.device_s;
        runs += cost.runs;
        failed += cost.failed;
    }
    text += fmt::format("| total | {} | {} | {} | {:.3f} |\n\n", runs, failed, hours(wall_s), device_s / 3600);
    if (state.result && state.result->promoted && state.result->speedup > 1) {
        const double saved_share = 1 - 1 / state.result->speedup;
        text += fmt::format(
            "Pay-back: the search took {} of the machine; it is earned back after {} of training with the change, "
            "which saves {:.1f} h of every 24 h.\n\n",
            hours(wall_s), hours(wall_s / (state.result->speedup - 1)), 24 * saved_share);
    }
    text += "Language-model tokens: 0.\n\n";
    return text;
}

std::string coverage_section(const CampaignState& state) {
    if (!state.doctor) return {};
    std::string text = "## What is checked\n\n";
    for (const auto& line : state.doctor->coverage) text += "- " + line + "\n";
    return text + "\n";
}

}  // namespace

std::string render_report(const CampaignState& state, const Contract& contract) {
    std::string text =
        fmt::format("# {}: infrarsi report\n\nRun {}, {} session{}, {} of wall time.\n\n", contract.name, state.run_id,
                    state.sessions, state.sessions == 1 ? "" : "s", hours(state.elapsed_s));
    text += headline(state);
    if (state.result && state.result->interrupted) {
        text += "\nThe search was stopped early; the best so far was re-verified like any other.\n";
    }
    if (state.search_done) text += fmt::format("\nThe search ended because {}.\n", state.why_search_done);
    text += "\n" + promotion_section(state) + reference_section(state) + trial_section(state) + ledger_section(state) +
            coverage_section(state);
    text += fmt::format("## Identity\n\n- contract {}\n- sources {}\n- verifier {}, infrarsi {}\n",
                        state.contract_digest, state.tree_digest, kVerifierVersion, INFRARSI_VERSION);
    for (const auto& [name, value] : state.environment) text += fmt::format("- {}: {}\n", name, value);
    return text;
}

}  // namespace infrarsi
