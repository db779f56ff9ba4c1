#include "core/campaign/apply.h"

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/campaign/campaign.h"
#include "core/contract/lock.h"
#include "core/contract/yaml_edit.h"
#include "core/text/diff.h"
#include "core/trial/materialise.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

Expected<std::optional<std::string>> text_if_there(const fs::path& path) {
    auto text = read_file(path);
    if (text) return std::optional<std::string>(std::move(*text));
    if (text.error().kind() == ErrorKind::not_found) return std::optional<std::string>();
    return Unexpected(std::move(text).error());
}

void add_change(ApplyPlan& plan, const std::string& path, std::optional<std::string> old_text,
                std::optional<std::string> new_text) {
    if (old_text == new_text) return;
    FileChange change{path, std::move(old_text), std::move(new_text), {}};
    change.diff =
        make_diff(path, change.old_text ? &*change.old_text : nullptr, change.new_text ? &*change.new_text : nullptr);
    plan.files.push_back(std::move(change));
}

// infrarsi.yaml must go on describing the job as it is today: what was a candidate's value becomes the reference.
Expected<void> add_contract_change(ApplyPlan& plan, const CampaignState& state, const Contract& contract,
                                   const std::string& command) {
    INFRARSI_ASSIGN(const std::string old_text, read_file(contract.file));
    std::string text = old_text;
    const auto set = [&](const std::vector<std::string>& key, const Value& value) -> Expected<void> {
        auto changed = set_yaml_scalar(text, key, value);
        if (!changed) {
            return Unexpected(std::move(changed)
                                  .error()
                                  .at({contract.file.string()})
                                  .while_doing("writing what was measured into the contract"));
        }
        text = std::move(*changed);
        return {};
    };
    for (const auto& [name, value] : state.result->candidate.settings) {
        INFRARSI_TRY(set({"knobs", name, "reference"}, value));
    }
    if (command != contract.launch.command) INFRARSI_TRY(set({"launch", "command"}, command));
    const fs::path relative = contract.file.lexically_relative(contract.root);
    add_change(plan, relative.string(), old_text, text);

    const fs::path lock_path = contract.root / "infrarsi.lock";
    INFRARSI_ASSIGN(const auto old_lock, text_if_there(lock_path));
    if (!old_lock) return {};
    INFRARSI_ASSIGN(Lock lock, read_lock(lock_path));
    INFRARSI_ASSIGN(const Contract changed, parse_contract(text, contract.file));
    lock.contract_digest = contract_digest(changed);
    add_change(plan, "infrarsi.lock", old_lock, format_lock(lock));
    return {};
}

Expected<const CampaignResult*> promoted_result(const CampaignState& state) {
    if (!state.result) {
        return fail(ErrorKind::not_found,
                    "the run {} has not finished: `infrarsi finish {}` re-verifies its best candidates", state.run_id,
                    state.run_dir.string());
    }
    if (!state.result->promoted) {
        return fail(ErrorKind::not_found, "the run {} promoted nothing ({}), so there is nothing to apply",
                    state.run_id, state.result->reason);
    }
    return &*state.result;
}

}  // namespace

Expected<ApplyPlan> plan_apply(const CampaignState& state) {
    INFRARSI_ASSIGN(const CampaignResult* result, promoted_result(state));
    INFRARSI_ASSIGN(const Contract contract, campaign_contract(state));
    INFRARSI_TRY(check_snapshot(state, contract));
    const fs::path snapshot = state.run_dir / "snapshot";
    INFRARSI_ASSIGN(const Realisation measured, realise(contract, snapshot, result->candidate));
    ApplyPlan plan;
    plan.root = contract.root;
    plan.notes = measured.notes;
    plan.command = measured.command;
    std::vector<std::string> moved;
    bool all_there = true;
    for (const auto& [path, new_text] : measured.files) {
        INFRARSI_ASSIGN(auto now, text_if_there(contract.root / path));
        INFRARSI_ASSIGN(const auto then, text_if_there(snapshot / path));
        if (now && *now == new_text) continue;
        all_there = false;
        if (now != then) moved.push_back(path);
        add_change(plan, path, std::move(now), new_text);
    }
    for (const auto& path : measured.removed) {
        INFRARSI_ASSIGN(auto now, text_if_there(contract.root / path));
        INFRARSI_ASSIGN(const auto then, text_if_there(snapshot / path));
        if (!now) continue;
        all_there = false;
        if (now != then) moved.push_back(path);
        add_change(plan, path, std::move(now), std::nullopt);
    }
    if (!moved.empty()) {
        return fail(
            ErrorKind::conflict,
            "changed since the campaign measured them: {}; the recommended change was verified on other content: "
            "restore them (the measured text is under {}) or run the campaign again",
            fmt::join(moved, ", "), snapshot.string());
    }
    plan.already_applied = all_there && !(measured.files.empty() && measured.removed.empty());
    INFRARSI_TRY(add_contract_change(plan, state, contract, measured.command));
    return plan;
}

Expected<void> add_optimized_script(ApplyPlan& plan, const CampaignState& state) {
    if (!state.result || !state.result->promoted) return {};
    INFRARSI_ASSIGN(const Contract contract, campaign_contract(state));
    INFRARSI_ASSIGN(const Realisation measured, realise(contract, state.run_dir / "snapshot", state.result->candidate));
    const auto quoted = [](const std::string& text) {
        std::string out = "'";
        for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
        return out + "'";
    };
    std::string script = fmt::format(
        "#!/usr/bin/env bash\n"
        "# Written by infrarsi {} (run {}). Starts the job as it was verified:\n"
        "# {:.2f}x faster than before in a fresh back-to-back re-run; {}.\n"
        "set -euo pipefail\n"
        "cd \"$(dirname \"${{BASH_SOURCE[0]}}\")\"/{}\n",
        INFRARSI_VERSION, state.run_id, state.result->speedup, state.result->candidate.describe(),
        quoted(contract.launch.cwd));
    auto env = contract.launch.env;
    for (const auto& [name, value] : measured.env) env[name] = value;
    for (const auto& [name, value] : env) script += fmt::format("export {}={}\n", name, quoted(value));
    script += measured.command + "\n";
    INFRARSI_ASSIGN(auto old_text, text_if_there(plan.root / "infrarsi_optimized.sh"));
    add_change(plan, "infrarsi_optimized.sh", std::move(old_text), std::move(script));
    return {};
}

namespace {

Expected<void> write_change(const fs::path& path, const FileChange& change) {
    if (!change.new_text) {
        std::error_code error;
        if (!fs::remove(path, error) && error) {
            return fail(ErrorKind::io, "cannot remove {}: {}", path.string(), error.message());
        }
        return {};
    }
    INFRARSI_TRY(make_folders(path.parent_path()));
    return write_file(path, *change.new_text, change.path.ends_with(".sh") ? 0755 : 0644);
}

}  // namespace

Expected<void> write_plan(const ApplyPlan& plan, const fs::path& backup_dir) {
    INFRARSI_TRY(make_folders(backup_dir));
    for (const auto& change : plan.files) {
        INFRARSI_ASSIGN(const auto now, text_if_there(plan.root / change.path));
        if (now != change.old_text) {
            return fail(ErrorKind::conflict, "{} changed while the plan was shown: nothing was written; try again",
                        change.path);
        }
        if (!change.old_text) continue;
        INFRARSI_TRY(make_folders((backup_dir / change.path).parent_path()));
        INFRARSI_TRY(write_file(backup_dir / change.path, *change.old_text));
    }
    std::size_t done = 0;
    Expected<void> outcome;
    for (; done < plan.files.size(); ++done) {
        const FileChange& change = plan.files[done];
        outcome = write_change(plan.root / change.path, change);
        if (!outcome) break;
    }
    if (outcome) return {};
    Error error = std::move(outcome).error();
    for (std::size_t i = 0; i < done; ++i) {
        const FileChange& change = plan.files[i];
        std::error_code ignored;
        if (change.old_text) {
            if (auto back = write_file(plan.root / change.path, *change.old_text); !back) {
                return Unexpected(std::move(error).while_doing(fmt::format(
                    "putting back {} failed too: its old text is in {}", change.path, backup_dir.string())));
            }
        } else {
            fs::remove(plan.root / change.path, ignored);
        }
    }
    return Unexpected(std::move(error).while_doing("applying the change; all files were put back as they were"));
}

std::string describe_diff(const ApplyPlan& plan) {
    std::string text;
    for (const auto& change : plan.files) text += change.diff;
    return text;
}

json to_json(const ApplyPlan& plan) {
    json files = json::array();
    for (const auto& change : plan.files) {
        files.push_back({{"path", change.path},
                         {"new", !change.old_text.has_value()},
                         {"removed", !change.new_text.has_value()},
                         {"diff", change.diff}});
    }
    return {{"root", plan.root.string()},
            {"files", std::move(files)},
            {"notes", plan.notes},
            {"command", plan.command},
            {"already_applied", plan.already_applied}};
}

}  // namespace infrarsi
