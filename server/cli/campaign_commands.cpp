// doctor, run, finish: commands that run a campaign.

#include "server/cli/campaign_commands.h"

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/campaign/user_key.h"
#include "core/report/report.h"
#include "core/text/diff.h"
#include "server/cli/adopt.h"
#include "server/cli/exit_codes.h"
#include "server/cli/output.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

Expected<CampaignSession> open_session(const Program& program, const Options& options, const Contract& contract) {
    CampaignSession session;
    ProgressBudget budget;
    budget.screens = options.overrides.screens ? options.overrides.screens : contract.budget.screens;
    budget.wallclock_s = options.overrides.wallclock_s ? options.overrides.wallclock_s : contract.budget.wallclock_s;
    if (!budget.screens && !budget.wallclock_s && !contract.budget.gpu_hours) budget.screens = 16;
    session.observer = make_progress(program.stderr_is_terminal ? ProgressStyle::live : ProgressStyle::plain,
                                     options.verbose, stderr, *program.clock, budget);
    CampaignServices& services = session.services;
    services.target = program.target;
    services.clock = program.clock;
    services.interrupts = program.interrupts;
    services.observer = session.observer.get();
    INFRARSI_ASSIGN(services.key, user_key(program.config_dir));
    services.key_dir = program.config_dir;
    services.adapters_dir = program.data_dir / "adapters";
    services.parent_env = program.env;
    session.campaign.overrides = options.overrides;
    session.campaign.keep_trees = options.keep_trees;
    session.campaign.reference_runs = options.reference_runs.value_or(options.no_doctor ? 1 : 3);
    if (!options.out.empty()) session.campaign.runs_dir = program.working_dir / options.out;
    for (const auto& file : options.patch_files) {
        INFRARSI_ASSIGN(Patch patch, read_patch(program.working_dir / file));
        session.campaign.patches.push_back(std::move(patch));
    }
    return session;
}

Expected<Patch> read_patch(const fs::path& file) {
    Patch patch;
    INFRARSI_ASSIGN(patch.diff, read_file(file));
    const auto parsed = parse_diff(patch.diff);
    if (!parsed) return Unexpected(Error(parsed.error()).at({file.string()}));
    if (parsed->empty()) {
        return fail_at(ErrorKind::invalid_input, {file.string()}, "the patch changes nothing: it has no hunk");
    }
    patch.title = file.stem().string();
    patch.origin = "user";
    return patch;
}

Expected<void> write_report(const Campaign& campaign) {
    return write_file(campaign.state().run_dir / "REPORT.md", render_report(campaign.state(), campaign.contract()));
}

Expected<void> run_stages(Campaign& campaign, bool search) {
    INFRARSI_TRY(campaign.measure_reference());
    if (search) {
        INFRARSI_TRY(campaign.search());
    } else {
        INFRARSI_TRY(campaign.end_search("it was finished early"));
    }
    INFRARSI_TRY(campaign.promote());
    return write_report(campaign);
}

std::string summary_of(const CampaignState& state) {
    const CampaignResult& result = *state.result;
    std::string text;
    if (result.promoted) {
        text = fmt::format(
            "\nDelivered: {:.2f}x ({:.2f}x to {:.2f}x) in a fresh re-run, back to back with the unchanged job.\n"
            "Change: {}\n",
            result.speedup, result.low, result.high, result.candidate.describe());
    } else {
        text = fmt::format("\nDelivered: 1.00x. The job stays as it is: {}.\n", result.reason);
    }
    return text + fmt::format("Report: {}\n", (state.run_dir / "REPORT.md").string());
}

namespace {

std::string doctor_text(const CampaignState& state) {
    const DoctorResult& doctor = *state.doctor;
    std::string text = fmt::format(
        "The unchanged job: {:.4f} s an update over {} runs.\n"
        "Noise of a back-to-back pair: {:.2f} % (from {}, {:.0f} degrees of freedom){}. A search result counts above "
        "{:.1f} %.\n",
        doctor.reference_s, doctor.noise.runs, 100 * doctor.noise.sigma_pair, doctor.noise.winner, doctor.noise.degrees,
        doctor.noise.drifting ? "; the step time drifts within a run" : "", 100 * doctor.gate);
    if (doctor.reference_gib > 0) text += fmt::format("Peak memory: {:.2f} GiB a device.\n", doctor.reference_gib);
    if (doctor.phases.known) {
        text += fmt::format(
            "Time by phase: forward {:.0f} %, backward {:.0f} %, optimizer {:.0f} %, data {:.0f} %, other {:.0f} %.\n",
            100 * doctor.phases.forward, 100 * doctor.phases.backward, 100 * doctor.phases.optimizer,
            100 * doctor.phases.data, 100 * doctor.phases.other);
    }
    text += doctor.loss_power + "\n\nWhat can be checked:\n";
    for (const auto& line : doctor.coverage) text += "  " + line + "\n";
    text += "\nExperience: no packs are used by this version.\n";
    return text + fmt::format("`infrarsi run --resume {}` searches from these runs.\n", state.run_dir.string());
}

// A doctor's run that this contract, these sources and this machine would give again: it is continued, not paid for
// twice.
std::optional<fs::path> reusable_doctor(const Program& program, const Contract& contract,
                                        const CampaignSession& session) {
    const fs::path runs =
        session.campaign.runs_dir.empty() ? contract.root / ".infrarsi" / "runs" : session.campaign.runs_dir;
    const auto newest = newest_run(runs);
    if (!newest || !session.campaign.patches.empty()) return std::nullopt;
    const auto state = load_state(*newest, session.services.key);
    if (!state || !state->doctor || state->search_done || state->result) return std::nullopt;
    if (std::any_of(state->trials.begin(), state->trials.end(),
                    [](const TrialRecord& t) { return t.role != "reference"; })) {
        return std::nullopt;
    }
    Contract changed = contract;
    apply_overrides(changed, session.campaign.overrides);
    if (state->contract_digest != contract_digest(changed) || state->environment != program.target->fingerprint()) {
        return std::nullopt;
    }
    const fs::path check = *newest / "snapshot.check";
    const auto snapshot = take_snapshot(contract, check);
    [[maybe_unused]] auto removed = remove_tree(check);
    if (!snapshot || snapshot->digest != state->tree_digest) return std::nullopt;
    return *newest;
}

}  // namespace

Expected<Campaign> open_campaign(const Program& program, const Contract& contract, CampaignSession& session) {
    if (const auto doctor = reusable_doctor(program, contract, session)) {
        session.observer->note(fmt::format("going on from doctor's run {}", doctor->string()));
        return Campaign::resume(*doctor, session.campaign, Campaign::Reopen::no, session.services);
    }
    return Campaign::start(contract, session.campaign, session.services);
}

Expected<int> run_doctor(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const fs::path file, find_contract(program, options.target));
    INFRARSI_ASSIGN(const Contract contract, read_contract(file));
    INFRARSI_ASSIGN(CampaignSession session, open_session(program, options, contract));
    INFRARSI_ASSIGN(Campaign campaign, open_campaign(program, contract, session));
    INFRARSI_TRY(campaign.measure_reference());
    print_out(options.json ? pretty_json(to_json(campaign.state())) : doctor_text(campaign.state()));
    return kExitDone;
}

Expected<int> run_search(const Program& program, const Options& options) {
    if (options.resume) {
        Options as_run = options;
        as_run.target = *options.resume;
        INFRARSI_ASSIGN(const fs::path run_dir, find_run(program, as_run));
        INFRARSI_ASSIGN(const std::string key, user_key(program.config_dir));
        INFRARSI_ASSIGN(const CampaignState before, load_state(run_dir, key));
        INFRARSI_ASSIGN(const Contract contract, campaign_contract(before));
        INFRARSI_ASSIGN(CampaignSession session, open_session(program, options, contract));
        // A run that reached its end goes on only when it is given more to spend.
        const bool more =
            options.overrides.screens || options.overrides.wallclock_s || options.overrides.target_speedup;
        INFRARSI_ASSIGN(Campaign campaign,
                        Campaign::resume(run_dir, session.campaign,
                                         more ? Campaign::Reopen::search : Campaign::Reopen::no, session.services));
        INFRARSI_TRY(run_stages(campaign, /*search=*/true));
        print_out(options.json ? pretty_json(to_json(campaign.state())) : summary_of(campaign.state()));
        return kExitDone;
    }
    INFRARSI_ASSIGN(const fs::path file, find_contract(program, options.target));
    INFRARSI_ASSIGN(const Contract contract, read_contract(file));
    INFRARSI_ASSIGN(CampaignSession session, open_session(program, options, contract));
    INFRARSI_ASSIGN(Campaign campaign, open_campaign(program, contract, session));
    INFRARSI_TRY(run_stages(campaign, /*search=*/true));
    print_out(options.json ? pretty_json(to_json(campaign.state()))
                           : summary_of(campaign.state()) +
                                 (campaign.state().result->promoted
                                      ? "`infrarsi apply` shows the change, `infrarsi apply --write` writes it.\n"
                                      : ""));
    return kExitDone;
}

Expected<int> run_finish(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const std::string key, user_key(program.config_dir));
    INFRARSI_ASSIGN(const fs::path run_dir, find_run(program, options));
    INFRARSI_ASSIGN(const CampaignState before, load_state(run_dir, key));
    if (options.dry_run) {
        const TrialRecord* best = before.incumbent();
        const json body = {{"run", run_dir.string()},
                           {"finished", before.result.has_value()},
                           {"best", best ? to_json(*best) : json(nullptr)}};
        print_out(options.json    ? pretty_json(body)
                  : before.result ? summary_of(before)
                  : best          ? fmt::format("Would re-verify {} ({}), {:.2f}x in the search.\n", best->id,
                                                best->candidate.describe(), std::exp(best->log_speedup))
                  : before.doctor ? "No valid candidate is faster than the noise: would end with 1.00x.\n"
                                  : "The reference is not measured yet: would measure it and end with 1.00x.\n");
        return kExitDone;
    }
    INFRARSI_ASSIGN(const Contract contract, campaign_contract(before));
    if (options.branch) INFRARSI_TRY(check_branch(contract.file, *options.branch));
    INFRARSI_ASSIGN(CampaignSession session, open_session(program, options, contract));
    INFRARSI_ASSIGN(Campaign campaign,
                    Campaign::resume(run_dir, session.campaign, Campaign::Reopen::no, session.services));
    INFRARSI_TRY(run_stages(campaign, /*search=*/false));
    return adopt_result(campaign, options, json::object());
}

Expected<int> adopt_result(const Campaign& campaign, const Options& options, json extra) {
    const CampaignState& state = campaign.state();
    extra["campaign"] = to_json(state);
    extra["apply"] = nullptr;
    std::string text = summary_of(state);
    if (state.result->promoted) {
        INFRARSI_ASSIGN(ApplyPlan plan, plan_apply(state));
        INFRARSI_TRY(add_optimized_script(plan, state));
        INFRARSI_ASSIGN(extra["apply"], adopt(plan, state, options.branch ? Adoption::branch : Adoption::write,
                                              options.branch.value_or("")));
        text += "\n" + describe_adoption(plan, state, extra["apply"]);
    }
    print_out(options.json ? pretty_json(extra) : text);
    return kExitDone;
}

}  // namespace infrarsi
