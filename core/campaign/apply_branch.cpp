// A change as a commit on a new branch, made in git's object store: the working tree is never touched.

#include <git2.h>

#include <memory>

#include "core/campaign/apply.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

template <auto Free>
struct GitFree {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};
using Repository = std::unique_ptr<git_repository, GitFree<git_repository_free>>;
using Reference = std::unique_ptr<git_reference, GitFree<git_reference_free>>;
using Commit = std::unique_ptr<git_commit, GitFree<git_commit_free>>;
using Tree = std::unique_ptr<git_tree, GitFree<git_tree_free>>;
using Index = std::unique_ptr<git_index, GitFree<git_index_free>>;
using Signature = std::unique_ptr<git_signature, GitFree<git_signature_free>>;

struct GitLibrary {
    GitLibrary() {
        git_libgit2_init();
        git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    }
    ~GitLibrary() { git_libgit2_shutdown(); }
};

Unexpected git_failure(const std::string& what) {
    const git_error* last = git_error_last();
    return fail(ErrorKind::io, "{}: {}", what, last && last->message ? last->message : "git gave no reason");
}

Expected<void> check_unchanged(git_repository* repository, const std::string& path) {
    unsigned int status = 0;
    if (git_status_file(&status, repository, path.c_str()) != 0) return {};  // not there yet
    if (status == GIT_STATUS_CURRENT || status == GIT_STATUS_IGNORED) return {};
    return fail(
        ErrorKind::conflict,
        "{} has changes that are not committed, so a branch from HEAD would not be what was measured: commit them "
        "first, or use `infrarsi apply --write`",
        path);
}

// The repository around `root`, which must have a working tree.
Expected<Repository> open_repository(const fs::path& root) {
    git_repository* raw = nullptr;
    if (git_repository_open_ext(&raw, root.c_str(), 0, nullptr) != 0) {
        return fail(ErrorKind::unsupported, "{} is not in a git repository: leave out --branch", root.string());
    }
    Repository repository(raw);
    if (!git_repository_workdir(raw)) {
        return fail(ErrorKind::unsupported, "the git repository has no working tree: leave out --branch");
    }
    return repository;
}

Expected<void> check_free(git_repository* repository, const std::string& branch) {
    git_reference* raw = nullptr;
    if (git_branch_lookup(&raw, repository, branch.c_str(), GIT_BRANCH_LOCAL) != 0) return {};
    const Reference exists(raw);
    return fail(ErrorKind::conflict, "the branch {} exists already: give another name to --branch", branch);
}

Expected<void> check_new(git_repository* repository, const std::string& branch) {
    int is_valid = 0;
    if (git_branch_name_is_valid(&is_valid, branch.c_str()) != 0 || is_valid == 0) {
        return fail(ErrorKind::invalid_input,
                    "\"{}\" is no name that git allows for a branch: give another to --branch", branch);
    }
    // git keeps a branch as a file: below the name of one there can be no other.
    for (auto end = branch.find('/'); end != std::string::npos; end = branch.find('/', end + 1)) {
        INFRARSI_TRY(check_free(repository, branch.substr(0, end)));
    }
    return check_free(repository, branch);
}

Expected<Commit> head_of(git_repository* repository) {
    git_object* raw = nullptr;
    if (git_revparse_single(&raw, repository, "HEAD^{commit}") != 0) {
        return fail(ErrorKind::unsupported, "the git repository has no commit yet: commit once, or leave out --branch");
    }
    return Commit(reinterpret_cast<git_commit*>(raw));
}

// `path`, relative to `root`, as git names it.
std::string path_in(git_repository* repository, const fs::path& root, const std::string& path) {
    std::error_code error;
    const fs::path workdir = fs::canonical(git_repository_workdir(repository), error);
    const fs::path prefix = fs::relative(fs::canonical(root, error), workdir, error);
    return (prefix / path).lexically_normal().generic_string();
}

// One change in the index; `path` is relative to the repository's working tree.
Expected<void> stage(git_repository* repository, git_index* index, const std::string& path, const FileChange& change) {
    if (!change.new_text) {
        if (git_index_remove_bypath(index, path.c_str()) != 0) return git_failure("cannot remove " + path);
        return {};
    }
    git_index_entry entry{};
    if (const auto* known = git_index_get_bypath(index, path.c_str(), 0)) entry.mode = known->mode;
    if (entry.mode == 0) entry.mode = path.ends_with(".sh") ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
    entry.path = path.c_str();
    const std::string& text = *change.new_text;
    if (git_blob_create_from_buffer(&entry.id, repository, text.data(), text.size()) != 0) {
        return git_failure("cannot store " + path);
    }
    if (git_index_add(index, &entry) != 0) return git_failure("cannot add " + path);
    return {};
}

// The tree of `head` with the plan's changes in it.
Expected<Tree> changed_tree(git_repository* repository, const git_commit* head, const ApplyPlan& plan) {
    git_tree* raw_tree = nullptr;
    if (git_commit_tree(&raw_tree, head) != 0) return git_failure("cannot read HEAD");
    const Tree base(raw_tree);
    git_index* raw_index = nullptr;
    if (git_index_new(&raw_index) != 0) return git_failure("cannot make an index");
    const Index index(raw_index);
    if (git_index_read_tree(raw_index, raw_tree) != 0) return git_failure("cannot read HEAD");

    for (const auto& change : plan.files) {
        const std::string path = path_in(repository, plan.root, change.path);
        INFRARSI_TRY(check_unchanged(repository, path));
        INFRARSI_TRY(stage(repository, raw_index, path, change));
    }
    git_oid id;
    if (git_index_write_tree_to(&id, raw_index, repository) != 0) return git_failure("cannot write the tree");
    git_tree* raw_changed = nullptr;
    if (git_tree_lookup(&raw_changed, repository, &id) != 0) return git_failure("cannot read the new tree");
    return Tree(raw_changed);
}

// Writes the commit, which no branch holds yet.
Expected<Commit> commit_tree(git_repository* repository, const git_tree* tree, const git_commit* parent,
                             const std::string& message) {
    git_signature* raw_author = nullptr;
    if (git_signature_default(&raw_author, repository) != 0 &&
        git_signature_now(&raw_author, "infrarsi", "infrarsi@localhost") != 0) {
        return git_failure("cannot make a signature");
    }
    const Signature author(raw_author);
    git_oid id;
    if (git_commit_create(&id, repository, nullptr, raw_author, raw_author, "UTF-8", message.c_str(), tree, 1,
                          &parent) != 0) {
        return git_failure("cannot commit");
    }
    git_commit* raw = nullptr;
    if (git_commit_lookup(&raw, repository, &id) != 0) return git_failure("cannot read the new commit");
    return Commit(raw);
}

}  // namespace

Expected<void> check_branch(const fs::path& contract_file, const std::string& branch) {
    const GitLibrary library;
    const fs::path root = contract_file.parent_path();
    INFRARSI_ASSIGN(const Repository repository, open_repository(root));
    INFRARSI_TRY(check_new(repository.get(), branch));
    INFRARSI_ASSIGN(const Commit head, head_of(repository.get()));
    return check_unchanged(repository.get(), path_in(repository.get(), root, contract_file.filename().string()));
}

Expected<std::string> write_branch(const ApplyPlan& plan, const std::string& branch, const std::string& message) {
    const GitLibrary library;
    INFRARSI_ASSIGN(const Repository repository, open_repository(plan.root));
    INFRARSI_TRY(check_new(repository.get(), branch));
    INFRARSI_ASSIGN(const Commit head, head_of(repository.get()));
    INFRARSI_ASSIGN(const Tree tree, changed_tree(repository.get(), head.get(), plan));
    INFRARSI_ASSIGN(const Commit commit, commit_tree(repository.get(), tree.get(), head.get(), message));
    git_reference* raw = nullptr;
    if (git_branch_create(&raw, repository.get(), branch.c_str(), commit.get(), 0) != 0) {
        return git_failure("cannot create the branch " + branch);
    }
    const Reference created(raw);
    char hex[GIT_OID_HEXSZ + 1];
    git_oid_tostr(hex, sizeof hex, git_commit_id(commit.get()));
    return std::string(hex);
}

}  // namespace infrarsi
