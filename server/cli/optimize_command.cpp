// optimize: all five stages in one command.

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/campaign/apply.h"
#include "server/cli/campaign_commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/init_command.h"
#include "server/cli/output.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string plan_text(const Contract& contract, const Options& options) {
    std::string text =
        fmt::format("The plan for {}:\n  command: {}\n  {} reference runs of {} updates, window {} to {}\n",
                    contract.name, contract.launch.command, options.reference_runs.value_or(options.no_doctor ? 1 : 3),
                    contract.launch.updates, contract.launch.warmup + 1, contract.launch.updates);
    const int screens = options.overrides.screens.value_or(contract.budget.screens.value_or(16));
    text += fmt::format(
        "  up to {} full runs of candidates, then 4 to 12 runs back to back for each of at most 3 finalists\n",
        screens);
    for (const auto& knob : contract.knobs) {
        std::string values;
        for (const auto& value : knob.values) {
            values += (values.empty() ? "" : ", ") + to_text(value) + (value == knob.reference ? " (today)" : "");
        }
        text += fmt::format("  {} ({} {}): {}\n", knob.name, to_string(knob.kind), knob.spelling, values);
    }
    return text + "Nothing was run.\n";
}

json plan_json(const Contract& contract, const Options& options) {
    json knobs = json::array();
    for (const auto& knob : contract.knobs) {
        json values = json::array();
        for (const auto& value : knob.values) values.push_back(to_json(value));
        knobs.push_back({{"name", knob.name},
                         {"spelling", knob.spelling},
                         {"values", values},
                         {"reference", to_json(knob.reference)}});
    }
    return {{"dry_run", true},
            {"command", contract.launch.command},
            {"updates", contract.launch.updates},
            {"reference_runs", options.reference_runs.value_or(options.no_doctor ? 1 : 3)},
            {"screens", options.overrides.screens.value_or(contract.budget.screens.value_or(16))},
            {"knobs", std::move(knobs)}};
}

}  // namespace

Expected<int> run_optimize(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const Drafted drafted, draft_files(program, options, IfThere::keep));
    if (!options.json) print_err(describe(drafted));
    const Contract& contract = drafted.contract;
    if (options.dry_run) {
        print_out(options.json ? pretty_json(plan_json(contract, options)) : plan_text(contract, options));
        return kExitDone;
    }
    if (options.branch) INFRARSI_TRY(check_branch(contract.file, *options.branch));
    INFRARSI_ASSIGN(CampaignSession session, open_session(program, options, contract));
    INFRARSI_ASSIGN(Campaign campaign, open_campaign(program, contract, session));
    INFRARSI_TRY(run_stages(campaign, /*search=*/true));
    return adopt_result(campaign, options, {{"init", to_json(drafted)}});
}

}  // namespace infrarsi
