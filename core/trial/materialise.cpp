#include "core/trial/materialise.h"

#include <sys/stat.h>

#include <cerrno>

#include "core/base/files.h"
#include "core/contract/scope.h"
#include "core/trial/tree.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

Expected<void> write_realised(const fs::path& tree, const Realisation& realisation) {
    for (const std::string& path : realisation.removed) INFRARSI_TRY(detach_path(tree, path));
    for (const auto& [path, text] : realisation.files) {
        struct stat old{};
        const bool existed = ::stat((tree / path).c_str(), &old) == 0;
        INFRARSI_TRY(detach_path(tree, path));
        INFRARSI_TRY(write_file(tree / path, text, existed ? static_cast<int>((old.st_mode & 0777) | 0600) : 0644));
    }
    return {};
}

Expected<void> protect_frozen(const fs::path& tree, const Scope& scope) {
    std::error_code error;
    auto entries = fs::recursive_directory_iterator(tree, error);
    for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
        const auto type = entries->symlink_status(error).type();
        if (error || type != fs::file_type::regular) continue;
        if (scope.state(entries->path().lexically_relative(tree).generic_string()) != ScopeState::frozen) continue;
        struct stat info{};
        const bool is_executable = ::stat(entries->path().c_str(), &info) == 0 && (info.st_mode & 0111) != 0;
        if (::chmod(entries->path().c_str(), is_executable ? 0555 : 0444) != 0) {
            return fail(ErrorKind::io, "cannot make {} read-only: {}", entries->path().string(), errno_text(errno));
        }
    }
    if (error) return fail(ErrorKind::io, "cannot list {}: {}", tree.string(), error.message());
    return {};
}

Expected<void> fill_tree(const Snapshot& snapshot, const Scope& scope, const Realisation& realisation,
                         const fs::path& tree) {
    INFRARSI_TRY(copy_tree(snapshot.dir, tree));
    INFRARSI_TRY(write_realised(tree, realisation));
    return protect_frozen(tree, scope);
}

}  // namespace

Expected<void> materialise(const Snapshot& snapshot, const Contract& contract, const Realisation& realisation,
                           const fs::path& tree_dir) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(tree_dir, ignored))) {
        return fail(ErrorKind::conflict, "cannot make the tree {}: it is already there", tree_dir.string());
    }
    INFRARSI_ASSIGN(const Scope scope, Scope::of(contract));
    INFRARSI_TRY(make_folders(tree_dir.parent_path()));
    if (auto made = fill_tree(snapshot, scope, realisation, tree_dir); !made) {
        (void)remove_tree(tree_dir);
        return wrap(std::move(made).error(), fmt::format("making the tree {}", tree_dir.string()));
    }
    return {};
}

}  // namespace infrarsi
