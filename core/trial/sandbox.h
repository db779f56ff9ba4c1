#pragma once
// What a trial may see and write (DESIGN §5 isolation, notes/remote.md §4). With bubblewrap all is read-only but the
// trial's tree and scratch; the key, the journal and other trials are not there at all. Internal to trial.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/contract/contract.h"

namespace infrarsi {

struct SandboxPlan {
    std::string kind = "none";  // "bwrap", "none"
    std::string network = "inherit";
    std::string why;  // why less than bwrap
    std::vector<std::string> writable, readonly, hidden;
};

struct SandboxPaths {
    std::filesystem::path root, tree, scratch, trials_dir, key_dir, adapters_dir;
    std::vector<std::string> frozen;            // relative to tree
    std::vector<std::filesystem::path> linked;  // originals that the tree links to
};

// Probes bubblewrap where the contract leaves the choice. unsupported when the contract insists on it and it does not
// work, with its own words.
[[nodiscard]] Expected<SandboxPlan> plan_sandbox(const Isolation& wanted, const SandboxPaths& paths,
                                                 const std::map<std::string, std::string>& env);

}  // namespace infrarsi
