#pragma once
// Which files of a project are its sources, and which are only data beside them (DESIGN §2, snapshot). With git:
// tracked and untracked files, not the ignored ones; without: all but caches. Installed software (virtual environments,
// node_modules) is data unless it is tracked. Submodules and nested repositories are listed by their own rules.

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace infrarsi {

struct SourceList {
    std::vector<std::string> folders;   // relative, parents first; also empty ones
    std::vector<std::string> files;     // relative; regular files
    std::vector<std::string> symlinks;  // relative; the project's own symbolic links
    std::vector<std::string> data;      // relative; top-most ignored files and folders: to be linked, not copied
};

// `skip` is an absolute folder that is left out beside .git, .infrarsi and caches. Names are bytes: spaces, newlines
// and invalid UTF-8 are fine. Sorted. not_found when there is no such folder, io when a folder cannot be listed. Cost:
// one walk; about 30 µs a file.
[[nodiscard]] Expected<SourceList> list_sources(const std::filesystem::path& root, const std::filesystem::path& skip);

}  // namespace infrarsi
