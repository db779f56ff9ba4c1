#include "core/trial/source_list.h"

#include <dirent.h>
#include <git2.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <unordered_set>

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 7> kNever = {".git",        ".infrarsi",   "__pycache__",       ".pytest_cache",
                                                    ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints"};

// libgit2's reference-counted initialisation, held while it is used.
class GitLibrary {
public:
    GitLibrary() {
        git_libgit2_init();
        // The project may belong to another user (a container, a shared disk); only its list of files is read.
        git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    }
    GitLibrary(const GitLibrary&) = delete;
    GitLibrary& operator=(const GitLibrary&) = delete;
    ~GitLibrary() { git_libgit2_shutdown(); }
};

// What one repository says of the paths in it.
class GitView {
public:
    // Nothing when `folder` is in no repository, or in one that ignores it altogether.
    static std::unique_ptr<GitView> of(const fs::path& folder) {
        auto view = std::make_unique<GitView>();
        if (git_repository_open_ext(&view->repository_, folder.c_str(), 0, nullptr) != 0) return nullptr;
        const char* workdir = git_repository_workdir(view->repository_);
        std::error_code error;
        if (!workdir) return nullptr;
        const fs::path top = fs::canonical(workdir, error);
        const fs::path here = fs::canonical(folder, error);
        if (error) return nullptr;
        const std::string prefix = here.lexically_relative(top).string();
        if (prefix.starts_with("..")) return nullptr;
        view->prefix_ = prefix == "." ? "" : prefix + "/";
        if (!view->prefix_.empty() && view->ignores(prefix)) return nullptr;
        if (!view->read_index()) return nullptr;
        return view;
    }
    GitView() = default;
    GitView(const GitView&) = delete;
    GitView& operator=(const GitView&) = delete;
    ~GitView() {
        git_index_free(index_);
        git_repository_free(repository_);
    }

    // `path` relative to the folder that the view was made for.
    [[nodiscard]] bool is_data(const std::string& path, bool is_folder) const {
        const std::string full = prefix_ + path;
        if (tracked_.count(full) > 0 || (is_folder && tracked_folders_.count(full) > 0)) return false;
        return ignores(full);
    }

    [[nodiscard]] bool has_tracked_files(const std::string& folder) const {
        return tracked_folders_.count(prefix_ + folder) > 0;
    }

private:
    bool ignores(const std::string& path) const {
        int ignored = 0;
        return git_ignore_path_is_ignored(&ignored, repository_, path.c_str()) == 0 && ignored == 1;
    }
    bool read_index() {
        if (git_repository_index(&index_, repository_) != 0) return false;
        const std::size_t count = git_index_entrycount(index_);
        for (std::size_t i = 0; i < count; ++i) {
            std::string path = git_index_get_byindex(index_, i)->path;
            for (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0;
                 slash = path.rfind('/', slash - 1)) {
                if (!tracked_folders_.insert(path.substr(0, slash)).second) break;
            }
            tracked_.insert(std::move(path));
        }
        return true;
    }

    git_repository* repository_ = nullptr;
    git_index* index_ = nullptr;
    std::string prefix_;
    std::unordered_set<std::string> tracked_, tracked_folders_;
};

struct Folder {
    DIR* handle = nullptr;
    explicit Folder(const fs::path& path) : handle(::opendir(path.c_str())) {}
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        if (handle) ::closedir(handle);
    }
};

class Walk {
public:
    Walk(fs::path root, const fs::path& skip) : root_(std::move(root)), skip_(skip.lexically_normal()) {}

    Expected<SourceList> run() {
        const auto git = GitView::of(root_);
        INFRARSI_TRY(visit("", {git.get(), ""}));
        for (auto* list : {&list_.folders, &list_.files, &list_.symlinks, &list_.data})
            std::sort(list->begin(), list->end());
        return std::move(list_);
    }

private:
    // The repository that rules here, and the folder that it was opened for.
    struct Rules {
        const GitView* git = nullptr;
        std::string base;  // relative to root, empty or ending in '/'
        [[nodiscard]] bool is_data(const std::string& path, bool is_folder) const {
            return git && git->is_data(path.substr(base.size()), is_folder);
        }
        [[nodiscard]] bool has_tracked_files(const std::string& folder) const {
            return git && git->has_tracked_files(folder.substr(base.size()));
        }
    };

    Expected<void> visit(const std::string& prefix, const Rules& rules) {
        const fs::path here = root_ / prefix;
        std::vector<std::string> names;
        {
            const Folder folder(here);
            if (!folder.handle) {
                const int error = errno;
                return fail(error == ENOENT ? ErrorKind::not_found : ErrorKind::io, "cannot list the folder {}: {}",
                            here.string(), errno_text(error));
            }
            while (const dirent* entry = ::readdir(folder.handle)) names.emplace_back(entry->d_name);
        }
        for (const std::string& name : names) {
            if (name == "." || name == "..") continue;
            if (std::find(kNever.begin(), kNever.end(), name) != kNever.end()) continue;
            INFRARSI_TRY(take(prefix + name, rules));
        }
        return {};
    }

    Expected<void> take(const std::string& path, const Rules& rules) {
        const fs::path full = root_ / path;
        struct stat info{};
        if (::lstat(full.c_str(), &info) != 0 || full == skip_) return {};  // it went away meanwhile
        const bool is_folder = S_ISDIR(info.st_mode);
        const bool is_known = is_folder || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode);
        if (!is_known) return {};  // sockets, pipes, devices
        if (rules.is_data(path, is_folder)) {
            list_.data.push_back(path);
        } else if (S_ISLNK(info.st_mode)) {
            list_.symlinks.push_back(path);
        } else if (!is_folder) {
            list_.files.push_back(path);
        } else if (!rules.has_tracked_files(path) && is_environment(full)) {
            list_.data.push_back(path);
        } else {
            list_.folders.push_back(path);
            return descend(path, full, rules);
        }
        return {};
    }

    Expected<void> descend(const std::string& path, const fs::path& full, const Rules& rules) {
        std::error_code ignored;
        if (fs::exists(fs::symlink_status(full / ".git", ignored))) {
            // A submodule or a repository within the project has its own index and its own .gitignore.
            if (const auto inner = GitView::of(full)) return visit(path + "/", {inner.get(), path + "/"});
        }
        return visit(path + "/", rules);
    }

    // Installed software is no source, and may be many gigabytes.
    static bool is_environment(const fs::path& folder) {
        std::error_code ignored;
        return fs::exists(folder / "pyvenv.cfg", ignored) || fs::exists(folder / "conda-meta", ignored) ||
               folder.filename() == "node_modules";
    }

    fs::path root_, skip_;
    SourceList list_;
};

}  // namespace

Expected<SourceList> list_sources(const fs::path& root, const fs::path& skip) {
    const GitLibrary library;
    return Walk(root, skip).run();
}

}  // namespace infrarsi
