#include "server/cli/adopt.h"

#include <nlohmann/json.hpp>

namespace infrarsi {

using nlohmann::json;

Expected<json> adopt(const ApplyPlan& plan, const CampaignState& state, Adoption how, const std::string& branch) {
    json done = to_json(plan);
    done["written"] = false;
    done["branch"] = nullptr;
    done["commit"] = nullptr;
    done["speedup"] = state.result->speedup;
    if (plan.files.empty() || how == Adoption::show) return done;
    if (how == Adoption::branch) {
        const std::string message =
            fmt::format("Make training {:.2f}x faster\n\n{}\n\nVerified by infrarsi run {}: {}", state.result->speedup,
                        state.result->candidate.describe(), state.run_id, state.result->reason);
        INFRARSI_ASSIGN(const std::string commit, write_branch(plan, branch, message));
        done["branch"] = branch;
        done["commit"] = commit;
    } else {
        INFRARSI_TRY(write_plan(plan, state.run_dir / "before-apply"));
        done["written"] = true;
    }
    return done;
}

std::string describe_adoption(const ApplyPlan& plan, const CampaignState& state, const json& done) {
    if (plan.files.empty()) return "The recommended change is in your files already.\n";
    std::string text = describe_diff(plan) + "\n";
    for (const auto& note : plan.notes) text += "  " + note + "\n";
    std::string names;
    for (const auto& change : plan.files) names += (names.empty() ? "" : ", ") + change.path;
    if (done["written"].get<bool>()) {
        text += fmt::format("Written: {}. The old contents are kept in {}.\n", names,
                            (state.run_dir / "before-apply").string());
    } else if (done["branch"].is_string()) {
        text += fmt::format(
            "Committed on the branch {} ({}); your working tree is untouched. `git switch {}` goes there.\n",
            done["branch"].get<std::string>(), done["commit"].get<std::string>().substr(0, 12),
            done["branch"].get<std::string>());
    } else {
        text += fmt::format("Nothing is written yet. `infrarsi apply --write` changes {}.\n", names);
    }
    text += fmt::format("Afterwards the job starts with: {}\n", plan.command);
    return text;
}

}  // namespace infrarsi
