#pragma once
// apply: the promoted candidate as changes to the user's files (DESIGN §6). It is planned first and shown; writing is
// all or nothing, never touches frozen files, and refuses when the files have moved since the campaign.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/campaign/state.h"
#include "core/exec/target.h"

namespace infrarsi {

struct FileChange {
    std::string path;                     // relative to the project root
    std::optional<std::string> old_text;  // nothing: the file is new
    std::optional<std::string> new_text;  // nothing: the file goes away
    std::string diff;                     // unified
};

struct ApplyPlan {
    std::filesystem::path root;
    std::vector<FileChange> files;   // launch configuration, sources, infrarsi.yaml; empty: nothing to change
    std::vector<std::string> notes;  // a sentence for each setting and patch
    std::string command;             // how the job is started afterwards
    bool already_applied = false;
};

// not_found: the run promoted nothing or did not finish; conflict: a file that the change touches differs from what the
// campaign measured, with each such file; frozen as in realise.
[[nodiscard]] Expected<ApplyPlan> plan_apply(const CampaignState& state);

// Adds a script that starts the job as `plan` leaves it, with what was measured in its comment. `command` is
// plan.command, or the launch command of the contract when nothing was promoted (then nothing is added).
[[nodiscard]] Expected<void> add_optimized_script(ApplyPlan& plan, const CampaignState& state);

// Writes every file or, on an error, puts back those already written. Old contents are kept under `backup_dir`.
[[nodiscard]] Expected<void> write_plan(const ApplyPlan& plan, const std::filesystem::path& backup_dir);

// What write_branch would refuse whatever the change will be, asked before hours are spent on one: invalid_input: no
// name of a branch; conflict: the branch exists, or the contract has uncommitted changes; unsupported: not a git
// repository, or one without a commit.
[[nodiscard]] Expected<void> check_branch(const std::filesystem::path& contract_file, const std::string& branch);

// Commits the change on a new branch from HEAD, leaving the working tree and the current branch as they are. Errors as
// in check_branch, and conflict: a file that the change touches has uncommitted changes.
[[nodiscard]] Expected<std::string> write_branch(const ApplyPlan& plan, const std::string& branch,
                                                 const std::string& message);

// All diffs, as `git apply` takes them.
[[nodiscard]] std::string describe_diff(const ApplyPlan& plan);

[[nodiscard]] nlohmann::json to_json(const ApplyPlan& plan);

}  // namespace infrarsi
