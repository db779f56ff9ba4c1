#include "core/trial/patching.h"

#include <optional>

#include "core/base/files.h"
#include "core/contract/scope.h"
#include "core/text/diff.h"
#include "core/trial/python_syntax.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

class Patcher {
public:
    Patcher(const Scope& scope, const fs::path& root) : scope_(scope), root_(root) {}

    Expected<void> apply(const Patch& patch) {
        INFRARSI_ASSIGN(const auto diffs, parse_diff(patch.diff));
        if (diffs.empty()) return fail(ErrorKind::invalid_input, "the diff changes no file");
        std::vector<std::string> names;
        for (const FileDiff& diff : diffs) {
            INFRARSI_TRY(apply_file(diff));
            names.push_back(diff.new_path.empty() ? diff.old_path + " (removed)" : diff.new_path);
        }
        result.notes.push_back(
            fmt::format("patch '{}' ({}) changes {}", patch.title, patch.origin, fmt::join(names, ", ")));
        return {};
    }

    PatchedFiles result;

private:
    Expected<void> apply_file(const FileDiff& diff) {
        if (!diff.old_path.empty() && !diff.new_path.empty() && diff.old_path != diff.new_path) {
            return fail(ErrorKind::unsupported, "the patch renames {} to {}; write it as a removal and a new file",
                        diff.old_path, diff.new_path);
        }
        const std::string path = diff.new_path.empty() ? diff.old_path : diff.new_path;
        INFRARSI_TRY(check_scope(path));
        INFRARSI_TRY(check_links(path));
        INFRARSI_TRY(check_place(path));
        INFRARSI_ASSIGN(const auto old_text, current(path));
        if (diff.old_path.empty() && old_text) {
            return fail(ErrorKind::conflict, "the patch creates {}, which is already there", path);
        }
        if (!diff.old_path.empty() && !old_text) {
            return fail(ErrorKind::conflict, "the patch changes {}, which is not there", path);
        }
        INFRARSI_ASSIGN(std::string text, apply_hunks(old_text.value_or(""), diff));
        if (diff.new_path.empty()) {
            if (!text.empty()) {
                return fail(ErrorKind::conflict, "the patch removes {}, but more is in it than the patch takes out",
                            path);
            }
            result.files.erase(path);
            result.removed.insert(path);
            return {};
        }
        INFRARSI_TRY(check_python(path, old_text.value_or(""), text));
        result.removed.erase(path);
        result.files[path] = std::move(text);
        return {};
    }

    Expected<void> check_scope(const std::string& path) const {
        switch (scope_.state(path)) {
            case ScopeState::editable: return {};
            case ScopeState::frozen:
                return fail(ErrorKind::frozen, "{} is frozen: the contract lets no candidate change it", path);
            case ScopeState::outside: break;
        }
        return fail(ErrorKind::frozen,
                    "{} is outside the editable scope: widen scope.editable in infrarsi.yaml if "
                    "candidates may change it",
                    path);
    }

    Expected<void> check_links(const std::string& path) const {
        fs::path here = root_;
        for (const fs::path& part : fs::path(path)) {
            here /= part;
            std::error_code ignored;
            if (fs::is_symlink(fs::symlink_status(here, ignored))) {
                return fail(ErrorKind::invalid_input,
                            "the patch changes {} through the symbolic link {}; name the file itself", path,
                            here.lexically_relative(root_).string());
            }
        }
        return {};
    }

    // What the system would refuse only when the tree is made: that is the patch's fault, and no end of the campaign.
    Expected<void> check_place(const std::string& path) const {
        const auto clash = [&](const std::string& other) {
            return fail(ErrorKind::conflict, "the patch makes {} a file, but {} is one", path, other);
        };
        fs::path folder;
        for (const fs::path& part : fs::path(path).parent_path()) {
            folder /= part;
            std::error_code ignored;
            const fs::file_status status = fs::status(root_ / folder, ignored);
            if (result.files.count(folder.string()) > 0 || (fs::exists(status) && !fs::is_directory(status))) {
                return clash(folder.string());
            }
        }
        const auto below = result.files.lower_bound(path + "/");
        if (below != result.files.end() && below->first.starts_with(path + "/")) return clash(below->first);
        std::error_code error;
        const fs::file_status status = fs::status(root_ / path, error);
        if (fs::exists(status) && !fs::is_regular_file(status)) {
            return fail(ErrorKind::conflict, "the patch changes {}, which is no regular file", path);
        }
        if (error && status.type() != fs::file_type::not_found) {
            return fail(ErrorKind::invalid_input, "the patch changes {}: {}", path, error.message());
        }
        return {};
    }

    Expected<std::optional<std::string>> current(const std::string& path) const {
        if (result.removed.count(path) > 0) return std::optional<std::string>();
        if (const auto found = result.files.find(path); found != result.files.end()) {
            return std::optional<std::string>(found->second);
        }
        auto text = read_file(root_ / path);
        if (text) return std::optional<std::string>(std::move(*text));
        if (text.error().kind() == ErrorKind::not_found) return std::optional<std::string>();
        return Unexpected(std::move(text).error());
    }

    static Expected<void> check_python(const std::string& path, const std::string& before, const std::string& after) {
        if (!path.ends_with(".py") && !path.ends_with(".pyi")) return {};
        const auto problem = new_syntax_problem(before, after);
        if (!problem) return {};
        return fail_at(ErrorKind::invalid_input, {path, problem->line}, "after the patch this is no valid Python: {}",
                       problem->text);
    }

    const Scope& scope_;
    const fs::path& root_;
};

}  // namespace

Expected<PatchedFiles> apply_patches(const Contract& contract, const fs::path& source_root,
                                     const std::vector<Patch>& patches) {
    INFRARSI_ASSIGN(const Scope scope, Scope::of(contract));
    Patcher patcher(scope, source_root);
    for (const Patch& patch : patches) {
        auto applied = patcher.apply(patch);
        if (!applied) return wrap(std::move(applied).error(), fmt::format("applying the patch '{}'", patch.title));
    }
    return std::move(patcher.result);
}

}  // namespace infrarsi
