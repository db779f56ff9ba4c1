#pragma once
// Reading and writing whole files. Writes are all or nothing: a temporary file in the same folder, fsync, rename.

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace infrarsi {

// The whole file. not_found, io; resource when it is larger than `limit_bytes`.
[[nodiscard]] Expected<std::string> read_file(const std::filesystem::path& path, std::size_t limit_bytes = 256u << 20);

// Replaces or creates `path` atomically, keeping the mode of a file that it replaces (0644, or `mode`, for a new one).
// A symbolic link is followed to the file that it names. io, resource (disk full); on error nothing is changed.
[[nodiscard]] Expected<void> write_file(const std::filesystem::path& path, std::string_view text, int mode = 0644);

// mkdir -p. io when it cannot be made, with the reason.
[[nodiscard]] Expected<void> make_folders(const std::filesystem::path& path);

// Removes a tree, also where folders in it are read-only. Missing is fine.
[[nodiscard]] Expected<void> remove_tree(const std::filesystem::path& path);

// fsync of a folder, after names in it changed.
void sync_folder(const std::filesystem::path& path);

}  // namespace infrarsi
