#include "core/testing/temp_dir.h"

#include <stdlib.h>

#include <stdexcept>

#include "core/base/files.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

template <class T>
T must(Expected<T> result) {
    if (!result) throw std::runtime_error(result.error().describe());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

void write_tree(const fs::path& root, const std::map<std::string, std::string>& files) {
    for (const auto& [name, text] : files) {
        const fs::path path = root / name;
        must(make_folders(path.parent_path()));
        must(write_file(path, text));
    }
}

std::map<std::string, std::string> read_tree(const fs::path& root) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        if (entry.is_symlink() || !entry.is_regular_file()) continue;
        files[entry.path().lexically_relative(root).generic_string()] = must(read_file(entry.path()));
    }
    return files;
}

TempDir::TempDir() {
    std::string pattern = (fs::temp_directory_path() / "infrarsi-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder: " + pattern);
    path_ = fs::canonical(pattern);
}

TempDir::TempDir(const std::map<std::string, std::string>& files) : TempDir() {
    write_tree(path_, files);
}

TempDir::~TempDir() {
    // What cannot be removed is left to the system's own clean-up; a destructor must not throw.
    if (!path_.empty()) static_cast<void>(remove_tree(path_));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
}

fs::path TempDir::write(const std::string& name, std::string_view text) const {
    write_tree(path_, {{name, std::string(text)}});
    return path_ / name;
}

std::string TempDir::read(const std::string& name) const {
    return must(read_file(path_ / name));
}

}  // namespace infrarsi
