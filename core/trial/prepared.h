#pragma once
// What the runner knew before it started a trial's agent, on disk and signed, so that another runner can finish the
// trial after a kill: without it nobody could tell what the frozen files were before the run. Internal to trial.

#include <filesystem>
#include <map>
#include <string>

#include "core/trial/sandbox.h"
#include "core/trial/trial_tree.h"

namespace infrarsi {

struct PreparedTrial {
    std::string signature;  // of the candidate
    std::string role;
    std::string tree_digest;
    FrozenState frozen;                      // before the run
    std::map<std::string, std::string> env;  // of the job
    std::string command;
    SandboxPlan sandbox;
    std::string temp_dir;  // outside the trial's folder, to be removed; empty: none
};

[[nodiscard]] Expected<void> write_prepared(const PreparedTrial& prepared, const std::filesystem::path& file,
                                            std::string_view key);
// not_found; corrupt when it does not verify with the key.
[[nodiscard]] Expected<PreparedTrial> read_prepared(const std::filesystem::path& file, std::string_view key);

}  // namespace infrarsi
