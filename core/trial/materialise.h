#pragma once
// Candidate → files. A snapshot of the working tree is taken when the campaign starts (uncommitted changes included);
// each trial gets its own tree from it. Settings are realised by the same edits that `apply` writes, so what was
// measured is what is recommended.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/contract/lock.h"
#include "core/trial/candidate.h"

namespace infrarsi {

// The new text of each file that a candidate changes, and how the job is then started. Pure: reads `source_root`,
// writes nothing.
struct Realisation {
    std::map<std::string, std::string> files;  // relative path → new content
    std::string command;                       // launch command after the change
    std::map<std::string, std::string> env;    // environment that the change adds (knobs of kind env)
    std::vector<std::string> notes;            // what was done, a sentence each: "train.sh:12 --micro-batch-size 2 → 4"
};

// frozen when a setting or patch would change a frozen file; invalid_input when a knob's flag or key cannot be found;
// conflict when a patch does not apply, with the hunk and the nearest text.
[[nodiscard]] Expected<Realisation> realise(const Contract& contract, const std::filesystem::path& source_root,
                                            const Candidate& candidate);

struct SnapshotOptions {
    std::size_t max_file_bytes = 64u << 20;  // larger files are linked, not copied
};

// Copies the project's files (git-tracked and untracked, not ignored; without git: everything but .git, .infrarsi,
// caches) into `snapshot_dir`; ignored folders and files are symbolic links to the originals. Returns digest of the
// tree.
struct Snapshot {
    std::filesystem::path dir;
    std::string digest;  // SHA-256 over (path, content digest) of copied files, sorted
    int files = 0, linked = 0;
};
[[nodiscard]] Expected<Snapshot> take_snapshot(const Contract& contract, const std::filesystem::path& snapshot_dir,
                                               const SnapshotOptions& options = {});

// A tree for one trial: snapshot + realisation, frozen files read-only. `tree_dir` must not exist.
[[nodiscard]] Expected<void> materialise(const Snapshot& snapshot, const Contract& contract,
                                         const Realisation& realisation, const std::filesystem::path& tree_dir);

}  // namespace infrarsi
