#pragma once
// What run_trial must know of a materialised tree: its digest, its frozen files and what it links to. Internal to
// trial.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/trial/tree.h"

namespace infrarsi {

struct TreeFacts {
    std::string digest;                      // SHA-256 over (path, content digest) of its own files, sorted
    std::vector<std::string> frozen;         // relative paths of frozen files, also those reached through links
    std::vector<std::string> frozen_mounts;  // own frozen files, whole folders where all that can be in them is frozen
    std::vector<std::filesystem::path> linked;  // absolute targets of links that leave the tree
};

// Walks the tree; files reached through links to data are listed as frozen where a frozen glob matches them, but do not
// count in the digest.
[[nodiscard]] Expected<TreeFacts> inspect_tree(const Contract& contract, const std::filesystem::path& tree);

using FrozenState = std::map<std::string, FileStamp>;  // relative path → state

// State of each path now; with `before`, unchanged files are not read again.
[[nodiscard]] FrozenState stamp_frozen(const std::filesystem::path& tree, const std::vector<std::string>& paths,
                                       const FrozenState* before = nullptr);

}  // namespace infrarsi
