#pragma once
// A folder with files for one test, removed at its end.

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "core/base/digest.h"
#include "core/base/files.h"

namespace infrarsi {

class TempProject {
public:
    explicit TempProject(const std::map<std::string, std::string>& files, const std::string& name = "job") {
        outer_ = std::filesystem::temp_directory_path() / ("infrarsi-test-" + random_hex(6));
        root_ = outer_ / name;
        std::filesystem::create_directories(root_);
        for (const auto& [path, text] : files) write(path, text);
    }
    ~TempProject() {
        std::error_code ignored;
        std::filesystem::remove_all(outer_, ignored);
    }
    TempProject(const TempProject&) = delete;
    TempProject& operator=(const TempProject&) = delete;

    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path, std::ios::binary) << text;
    }
    [[nodiscard]] std::string read(const std::string& path) const {
        std::ostringstream text;
        text << std::ifstream(root_ / path, std::ios::binary).rdbuf();
        return text.str();
    }
    [[nodiscard]] const std::filesystem::path& root() const { return root_; }

private:
    std::filesystem::path outer_, root_;
};

}  // namespace infrarsi
