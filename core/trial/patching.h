#pragma once
// The patch half of a realisation: diffs applied in memory to the files of a tree, within the contract's scopes.

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/trial/candidate.h"

namespace infrarsi {

struct PatchedFiles {
    std::map<std::string, std::string> files;  // relative path → new text
    std::set<std::string> removed;             // relative paths
    std::vector<std::string> notes;            // a sentence each patch
};

// In order, each on the result of those before; reads `source_root`, writes nothing. frozen when a patch names a frozen
// file or one outside the editable scope; conflict when it does not apply, creates what exists or changes what does
// not; invalid_input for a diff that does not parse, a path through a symbolic link, or Python that no longer parses
// (with the line).
[[nodiscard]] Expected<PatchedFiles> apply_patches(const Contract& contract, const std::filesystem::path& source_root,
                                                   const std::vector<Patch>& patches);

}  // namespace infrarsi
