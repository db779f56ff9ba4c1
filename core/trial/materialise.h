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
    std::vector<std::string> removed;          // relative paths of files that a patch deletes
    std::string command;                       // launch command after the change
    std::map<std::string, std::string> env;    // environment that the change adds (knobs of kind env)
    std::vector<std::string> notes;            // what was done, a sentence each: "train.sh:12 --micro-batch-size 2 → 4"
};

// Patches go on the text of `source_root` first, in order; settings are then edited into the result, so that diffs
// refer to the files that people see. frozen when a setting or patch would change a frozen file, or a patch one outside
// the editable scope; invalid_input when a knob's flag or key cannot be found, or patched Python no longer parses (with
// the line); conflict when a patch does not apply, with the hunk and the nearest text.
[[nodiscard]] Expected<Realisation> realise(const Contract& contract, const std::filesystem::path& source_root,
                                            const Candidate& candidate);

struct SnapshotOptions {
    std::size_t max_file_bytes = 64u << 20;  // larger files are linked, not copied
};

// Copies the project's files (git-tracked and untracked, not ignored; without git: everything but .git, .infrarsi,
// caches) into `snapshot_dir`, which must be empty or missing; ignored folders and files, and files over the limit, are
// symbolic links to the originals. The project's own links stay as they are when they point inside the project, else
// they lead to the absolute original. conflict, io, resource; on error nothing is left. Measured at 0.3 ms a
// file, unoptimised, on a busy machine.
struct Snapshot {
    std::filesystem::path dir;
    std::string digest;  // SHA-256 over (path, content digest) of copied files and own links, sorted
    int files = 0, linked = 0;
};
[[nodiscard]] Expected<Snapshot> take_snapshot(const Contract& contract, const std::filesystem::path& snapshot_dir,
                                               const SnapshotOptions& options = {});

// What a snapshot holds, links to data left out, so that what is taken from it later can be known to be what was
// measured. io.
[[nodiscard]] Expected<std::string> snapshot_content_digest(const Contract& contract,
                                                            const std::filesystem::path& snapshot_dir);

// A tree for one trial: snapshot + realisation, frozen files with mode 0444. `tree_dir` must not exist. What was linked
// into the snapshot is linked here too; a file that the realisation changes is always the tree's own. On error nothing
// is left. io, resource.
[[nodiscard]] Expected<void> materialise(const Snapshot& snapshot, const Contract& contract,
                                         const Realisation& realisation, const std::filesystem::path& tree_dir);

}  // namespace infrarsi
