#pragma once
// Copies of file trees: the snapshot and the tree of a trial. Every file of ours is an own copy (a shared extent where
// the file system can do that), never a hard link: a job that writes in place would write into the user's file.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace infrarsi {

// Copies a regular file: content, executable bits (always writable for its owner) and modification time. `target` must
// not exist. not_found, io, resource (disk full).
[[nodiscard]] Expected<void> copy_source_file(const std::filesystem::path& source, const std::filesystem::path& target);

// Copies folders, files and symbolic links (as they are). `target` must not exist.
[[nodiscard]] Expected<void> copy_tree(const std::filesystem::path& source, const std::filesystem::path& target);

[[nodiscard]] Expected<void> make_symlink(const std::filesystem::path& points_to, const std::filesystem::path& link);

// Makes tree/path a place of the tree's own: a folder above it that is a symbolic link to data becomes a folder of
// links to what is in it, and the link or file at the path itself goes. After that a file can be created there without
// touching anything outside the tree.
[[nodiscard]] Expected<void> detach_path(const std::filesystem::path& tree, const std::string& path);

// What shows that a file was written to, even if its content was put back.
struct FileStamp {
    std::string digest;  // SHA-256, or "missing"
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;

    [[nodiscard]] bool same_file_state(const FileStamp& other) const {
        return device == other.device && inode == other.inode && size == other.size &&
               modified_ns == other.modified_ns && changed_ns == other.changed_ns;
    }
};

// Follows symbolic links. With `before`, a file whose state is the same is not read again.
[[nodiscard]] FileStamp stamp_file(const std::filesystem::path& path, const FileStamp* before = nullptr);

}  // namespace infrarsi
