#include "core/trial/trial_tree.h"

#include "core/base/digest.h"
#include "core/contract/scope.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

// The part of a glob before its first wildcard: below it, or above it, files may match.
bool may_match_below(const std::string& glob, const std::string& folder) {
    const std::string literal = glob.substr(0, glob.find_first_of("*?[{"));
    return literal.starts_with(folder) || folder.starts_with(literal);
}

class Inspector {
public:
    Inspector(const Scope& scope, const std::vector<std::string>& globs) : scope_(scope), globs_(globs) {}

    struct Place {
        bool is_own = true;       // not reached through a link to data
        bool is_mounted = false;  // a folder above is among the mounts
    };

    Expected<void> walk(const fs::path& folder, const std::string& prefix, const Place& place) {
        std::error_code error;
        auto entries = fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
        for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
            INFRARSI_TRY(take(*entries, prefix + entries->path().filename().string(), place));
        }
        if (error) return fail(ErrorKind::io, "cannot list {}: {}", folder.string(), error.message());
        return {};
    }

    TreeFacts finish() {
        std::string text;
        for (const auto& [path, digest] : digests_) text += fmt::format("{}\n{}:{}\n", digest, path.size(), path);
        facts_.digest = sha256_hex(text);
        std::sort(facts_.frozen.begin(), facts_.frozen.end());
        std::sort(facts_.frozen_mounts.begin(), facts_.frozen_mounts.end());
        std::sort(facts_.linked.begin(), facts_.linked.end());
        return std::move(facts_);
    }

private:
    Expected<void> take(const fs::directory_entry& entry, const std::string& path, const Place& place) {
        std::error_code ignored;
        const bool is_link = entry.is_symlink(ignored);
        bool leaves = false;
        if (is_link && place.is_own) {
            const fs::path target = fs::read_symlink(entry.path(), ignored);
            leaves = target.is_absolute();
            if (leaves) {
                facts_.linked.push_back(target);
            } else {
                digests_[path] = "link " + sha256_hex(target.string());
            }
        }
        if (entry.is_directory(ignored)) {
            // A link within the tree leads to what is met by itself; links within data may lead in circles.
            if (is_link && !leaves) return {};
            const auto matches = [&](const std::string& glob) { return may_match_below(glob, path + "/"); };
            if (place.is_own && !is_link) return walk(entry.path(), path + "/", {true, mount_whole(path, place)});
            if (std::none_of(globs_.begin(), globs_.end(), matches)) return {};
            return walk(entry.path(), path + "/", {false, true});
        }
        if (!entry.is_regular_file(ignored)) return {};
        if (scope_.state(path) == ScopeState::frozen) {
            facts_.frozen.push_back(path);
            if (place.is_own && !is_link && !place.is_mounted) facts_.frozen_mounts.push_back(path);
        }
        if (place.is_own && !is_link) {
            INFRARSI_ASSIGN(digests_[path], sha256_file(entry.path()));
        }
        return {};
    }

    // A folder where any name at all would be frozen is one mount instead of thousands.
    bool mount_whole(const std::string& folder, const Place& place) {
        if (place.is_mounted) return true;
        const auto is_frozen = [&](const char* name) { return scope_.state(folder + name) == ScopeState::frozen; };
        if (!is_frozen("/any name") || !is_frozen("/any/name")) return false;
        facts_.frozen_mounts.push_back(folder);
        return true;
    }

    const Scope& scope_;
    const std::vector<std::string>& globs_;
    TreeFacts facts_;
    std::map<std::string, std::string> digests_;
};

}  // namespace

Expected<TreeFacts> inspect_tree(const Contract& contract, const fs::path& tree) {
    INFRARSI_ASSIGN(const Scope scope, Scope::of(contract));
    Inspector inspector(scope, contract.frozen);
    INFRARSI_TRY(inspector.walk(tree, "", {}));
    return inspector.finish();
}

FrozenState stamp_frozen(const fs::path& tree, const std::vector<std::string>& paths, const FrozenState* before) {
    FrozenState state;
    for (const std::string& path : paths) {
        const FileStamp* known = nullptr;
        if (before) {
            if (const auto found = before->find(path); found != before->end()) known = &found->second;
        }
        state[path] = stamp_file(tree / path, known);
    }
    return state;
}

}  // namespace infrarsi
