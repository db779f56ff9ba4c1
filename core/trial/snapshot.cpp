#include <sys/stat.h>

#include <cerrno>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/trial/materialise.h"
#include "core/trial/source_list.h"
#include "core/trial/tree.h"
#include "core/trial/trial_tree.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

// Where a copy of the project's own link must point so that it means the same: within the project it stays relative (a
// patch of its target must show through it), outside it becomes the absolute original.
fs::path link_target(const fs::path& root, const std::string& path, const fs::path& points_to) {
    const fs::path parent = fs::path(path).parent_path();
    const fs::path full = points_to.is_absolute() ? points_to : root / parent / points_to;
    const fs::path inside = full.lexically_normal().lexically_relative(root.lexically_normal());
    if (inside.empty() || *inside.begin() == "..") return root / path;
    if (!points_to.is_absolute()) return points_to;
    return inside.lexically_relative(parent.empty() ? fs::path(".") : parent);
}

class SnapshotMaker {
public:
    SnapshotMaker(fs::path root, Snapshot& snapshot, const SnapshotOptions& options)
        : root_(std::move(root)), snapshot_(snapshot), options_(options) {}

    Expected<void> make(const SourceList& list) {
        for (const std::string& folder : list.folders) INFRARSI_TRY(make_folder(folder));
        for (const std::string& file : list.files) INFRARSI_TRY(take_file(file));
        for (const std::string& link : list.symlinks) INFRARSI_TRY(take_symlink(link));
        for (const std::string& data : list.data) INFRARSI_TRY(link_original(data));
        std::string text;
        for (const auto& [path, digest] : digests_) text += fmt::format("{}\n{}:{}\n", digest, path.size(), path);
        snapshot_.digest = sha256_hex(text);
        return {};
    }

private:
    Expected<void> make_folder(const std::string& folder) {
        if (::mkdir((snapshot_.dir / folder).c_str(), 0755) == 0) return {};
        const int error = errno;
        return fail(error == ENOSPC || error == EDQUOT ? ErrorKind::resource : ErrorKind::io,
                    "cannot create the folder {}: {}", (snapshot_.dir / folder).string(), errno_text(error));
    }

    Expected<void> take_file(const std::string& file) {
        const fs::path original = root_ / file;
        const fs::path copy = snapshot_.dir / file;
        std::error_code error;
        const auto size = fs::file_size(original, error);
        if (!error && size > options_.max_file_bytes) return link_original(file);
        const auto copied = copy_source_file(original, copy);
        if (!copied) {
            if (copied.error().kind() == ErrorKind::not_found) return {};  // deleted since it was listed
            if (copied.error().kind() == ErrorKind::resource || fs::exists(copy, error)) return copied;
            return link_original(file);  // unreadable for us: then it is for the job too, exactly as it was
        }
        INFRARSI_ASSIGN(digests_[file], sha256_file(copy));
        ++snapshot_.files;
        return {};
    }

    Expected<void> take_symlink(const std::string& link) {
        std::error_code error;
        const fs::path points_to = fs::read_symlink(root_ / link, error);
        if (error) return {};  // it went away meanwhile
        const fs::path target = link_target(root_, link, points_to);
        digests_[link] = "link " + sha256_hex(points_to.string());
        ++snapshot_.linked;
        return make_symlink(target, snapshot_.dir / link);
    }

    Expected<void> link_original(const std::string& path) {
        ++snapshot_.linked;
        return make_symlink(root_ / path, snapshot_.dir / path);
    }

    fs::path root_;
    Snapshot& snapshot_;
    const SnapshotOptions& options_;
    std::map<std::string, std::string> digests_;
};

}  // namespace

Expected<Snapshot> take_snapshot(const Contract& contract, const fs::path& snapshot_dir,
                                 const SnapshotOptions& options) {
    const auto doing = [&] { return fmt::format("taking a snapshot of {}", contract.root.string()); };
    auto list = list_sources(contract.root, snapshot_dir);
    if (!list) return wrap(std::move(list).error(), doing());
    std::error_code error;
    if (fs::exists(snapshot_dir, error) && !fs::is_empty(snapshot_dir, error)) {
        return fail(ErrorKind::conflict, "cannot take a snapshot into {}: the folder is not empty",
                    snapshot_dir.string());
    }
    INFRARSI_TRY(make_folders(snapshot_dir));
    Snapshot snapshot;
    snapshot.dir = snapshot_dir;
    if (auto made = SnapshotMaker(contract.root, snapshot, options).make(*list); !made) {
        (void)remove_tree(snapshot_dir);
        return wrap(std::move(made).error(), doing());
    }
    return snapshot;
}

Expected<std::string> snapshot_content_digest(const Contract& contract, const fs::path& snapshot_dir) {
    INFRARSI_ASSIGN(const TreeFacts facts, inspect_tree(contract, snapshot_dir));
    return facts.digest;
}

}  // namespace infrarsi
