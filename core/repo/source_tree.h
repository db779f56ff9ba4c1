#pragma once
// A bounded look over a project's files by name: no contents, no vendored, generated or ignored folders.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace infrarsi {

struct SourceTree {
    std::vector<std::string> files;  // relative to the root, sorted by depth, then by name
    bool is_complete = true;         // false when a limit ended the walk
};

struct SourceTreeLimits {
    int depth = 6;
    std::size_t entries = 100'000;  // directory entries looked at
    std::size_t files = 20'000;     // kept
};

// Files whose names end in one of `endings`. Folders that git ignores (where there is a repository), hidden ones,
// virtual environments, node_modules, third_party and their like are left out; symbolic links to folders are not
// followed. not_found when the root is no folder. Cost: about 1 s for 500,000 entries.
[[nodiscard]] Expected<SourceTree> list_sources(const std::filesystem::path& root,
                                                const std::vector<std::string>& endings,
                                                const SourceTreeLimits& limits = {});

// The top folder of the git working tree that holds `path`; nothing without one.
[[nodiscard]] std::optional<std::filesystem::path> git_top(const std::filesystem::path& path);

}  // namespace infrarsi
