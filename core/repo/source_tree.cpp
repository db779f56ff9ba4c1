#include "core/repo/source_tree.h"

#include <git2.h>

#include <deque>

namespace infrarsi {
namespace {

namespace fs = std::filesystem;

class Ignores {
public:
    explicit Ignores(const fs::path& root) {
        git_libgit2_init();
        if (git_repository_open_ext(&repository_, root.c_str(), 0, nullptr) != 0) return;
        if (const char* workdir = git_repository_workdir(repository_)) top_ = fs::path(workdir).lexically_normal();
    }
    ~Ignores() {
        git_repository_free(repository_);
        git_libgit2_shutdown();
    }
    Ignores(const Ignores&) = delete;
    Ignores& operator=(const Ignores&) = delete;

    [[nodiscard]] bool folder(const fs::path& path) const {
        if (repository_ == nullptr || top_.empty()) return false;
        const std::string relative = path.lexically_relative(top_).generic_string() + "/";
        int ignored = 0;
        return git_ignore_path_is_ignored(&ignored, repository_, relative.c_str()) == 0 && ignored == 1;
    }

private:
    git_repository* repository_ = nullptr;
    fs::path top_;
};

bool is_left_out(const fs::path& folder) {
    static const std::vector<std::string> kNames = {
        "node_modules", "__pycache__", "venv",  "site-packages", "third_party", "thirdparty",    "vendor",
        "wandb",        "mlruns",      "build", "dist",          "outputs",     "lightning_logs"};
    const std::string name = folder.filename().string();
    if (name.starts_with('.') || name.ends_with(".egg-info")) return true;
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
    std::error_code ignored;
    return fs::exists(folder / "pyvenv.cfg", ignored) || fs::exists(folder / "conda-meta", ignored);
}

}  // namespace

std::optional<fs::path> git_top(const fs::path& path) {
    std::error_code ignored;
    for (fs::path folder = path; !folder.empty(); folder = folder.parent_path()) {
        if (fs::exists(folder / ".git", ignored)) return folder;
        if (folder == folder.parent_path()) break;
    }
    return std::nullopt;
}

Expected<SourceTree> list_sources(const fs::path& root, const std::vector<std::string>& endings,
                                  const SourceTreeLimits& limits) {
    std::error_code error;
    if (!fs::is_directory(root, error)) return fail(ErrorKind::not_found, "{} is not a folder", root.string());
    const Ignores ignores(root);
    SourceTree tree;
    std::size_t entries = 0;
    std::deque<std::pair<fs::path, int>> queue{{root, 0}};
    while (!queue.empty()) {
        const auto [folder, depth] = std::move(queue.front());
        queue.pop_front();
        std::vector<std::string> names;
        std::vector<fs::path> folders;
        const std::string prefix = depth == 0 ? "" : folder.lexically_relative(root).generic_string() + "/";
        for (fs::directory_iterator item(folder, fs::directory_options::skip_permission_denied, error), end;
             !error && item != end; item.increment(error)) {
            if (++entries > limits.entries || tree.files.size() >= limits.files) {
                tree.is_complete = false;
                break;
            }
            if (item->is_directory(error) && !item->is_symlink(error)) {
                if (depth < limits.depth) folders.push_back(item->path());
            } else {
                const std::string& path = item->path().native();
                const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
                if (std::any_of(endings.begin(), endings.end(), [&](const auto& e) { return name.ends_with(e); })) {
                    names.push_back(prefix + std::string(name));
                }
            }
        }
        error.clear();
        std::sort(names.begin(), names.end());
        tree.files.insert(tree.files.end(), names.begin(), names.end());
        if (!tree.is_complete) break;
        std::sort(folders.begin(), folders.end());
        for (fs::path& child : folders) {
            if (!is_left_out(child) && !ignores.folder(child)) queue.emplace_back(std::move(child), depth + 1);
        }
    }
    return tree;
}

}  // namespace infrarsi
