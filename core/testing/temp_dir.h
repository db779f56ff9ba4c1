#pragma once
// A folder for one test: made empty under the system's temporary folder, removed with all that is in it when the object
// goes. A test double, so that a failure to make it ends the test by an exception instead of an Expected.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace infrarsi {

// Writes `files` (relative path → text) under `root`, making the folders between. Throws std::runtime_error.
void write_tree(const std::filesystem::path& root, const std::map<std::string, std::string>& files);

// Every regular file under `root` as relative path → text; symbolic links are left out, folders do not show.
[[nodiscard]] std::map<std::string, std::string> read_tree(const std::filesystem::path& root);

class TempDir {
public:
    // The path is canonical (symbolic links resolved), so that it compares equal to what the engine reports.
    TempDir();
    explicit TempDir(const std::map<std::string, std::string>& files);
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    TempDir(TempDir&& other) noexcept;
    TempDir& operator=(TempDir&& other) noexcept;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

    // One file, folders made as needed; gives its path. Throws std::runtime_error.
    std::filesystem::path write(const std::string& name, std::string_view text) const;
    [[nodiscard]] std::string read(const std::string& name) const;

private:
    std::filesystem::path path_;
};

}  // namespace infrarsi
