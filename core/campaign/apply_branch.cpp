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

}  // namespace

Expected<std::string> write_branch(const ApplyPlan& plan, const std::string& branch, const std::string& message) {
    const GitLibrary library;
    git_repository* raw_repository = nullptr;
    if (git_repository_open_ext(&raw_repository, plan.root.c_str(), 0, nullptr) != 0) {
        return fail(ErrorKind::unsupported, "{} is not in a git repository: leave out --branch", plan.root.string());
    }
    const Repository repository(raw_repository);
    const char* workdir = git_repository_workdir(repository.get());
    if (!workdir) return fail(ErrorKind::unsupported, "the git repository has no working tree");
    git_reference* raw_branch = nullptr;
    if (git_branch_lookup(&raw_branch, repository.get(), branch.c_str(), GIT_BRANCH_LOCAL) == 0) {
        const Reference exists(raw_branch);
        return fail(ErrorKind::conflict, "the branch {} exists already: give another name to --branch", branch);
    }
    git_object* raw_head = nullptr;
    if (git_revparse_single(&raw_head, repository.get(), "HEAD^{commit}") != 0) {
        return fail(ErrorKind::unsupported, "the git repository has no commit yet: commit once, or leave out --branch");
    }
    const Commit head(reinterpret_cast<git_commit*>(raw_head));
    git_tree* raw_tree = nullptr;
    if (git_commit_tree(&raw_tree, head.get()) != 0) return git_failure("cannot read HEAD");
    const Tree base(raw_tree);
    git_index* raw_index = nullptr;
    if (git_index_new(&raw_index) != 0) return git_failure("cannot make an index");
    const Index index(raw_index);
    if (git_index_read_tree(index.get(), base.get()) != 0) return git_failure("cannot read HEAD");

    std::error_code error;
    const fs::path prefix = fs::relative(fs::canonical(plan.root, error), fs::canonical(workdir, error), error);
    for (const auto& change : plan.files) {
        const std::string path = (prefix / change.path).lexically_normal().generic_string();
        INFRARSI_TRY(check_unchanged(repository.get(), path));
        if (!change.new_text) {
            if (git_index_remove_bypath(index.get(), path.c_str()) != 0) return git_failure("cannot remove " + path);
            continue;
        }
        git_index_entry entry{};
        if (const auto* known = git_index_get_bypath(index.get(), path.c_str(), 0)) entry.mode = known->mode;
        if (entry.mode == 0)
            entry.mode = change.path.ends_with(".sh") ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
        entry.path = path.c_str();
        if (git_blob_create_from_buffer(&entry.id, repository.get(), change.new_text->data(),
                                        change.new_text->size()) != 0) {
            return git_failure("cannot store " + path);
        }
        if (git_index_add(index.get(), &entry) != 0) return git_failure("cannot add " + path);
    }
    git_oid tree_id, commit_id;
    if (git_index_write_tree_to(&tree_id, index.get(), repository.get()) != 0)
        return git_failure("cannot write the tree");
    if (git_tree_lookup(&raw_tree, repository.get(), &tree_id) != 0) return git_failure("cannot read the new tree");
    const Tree tree(raw_tree);
    git_signature* raw_author = nullptr;
    if (git_signature_default(&raw_author, repository.get()) != 0 &&
        git_signature_now(&raw_author, "infrarsi", "infrarsi@localhost") != 0) {
        return git_failure("cannot make a signature");
    }
    const Signature author(raw_author);
    const git_commit* parents[] = {head.get()};
    if (git_commit_create(&commit_id, repository.get(), nullptr, author.get(), author.get(), "UTF-8", message.c_str(),
                          tree.get(), 1, parents) != 0) {
        return git_failure("cannot commit");
    }
    git_object* raw_commit = nullptr;
    if (git_object_lookup(&raw_commit, repository.get(), &commit_id, GIT_OBJECT_COMMIT) != 0) {
        return git_failure("cannot read the new commit");
    }
    const Commit commit(reinterpret_cast<git_commit*>(raw_commit));
    if (git_branch_create(&raw_branch, repository.get(), branch.c_str(), commit.get(), 0) != 0) {
        return git_failure("cannot create the branch " + branch);
    }
    const Reference created(raw_branch);
    char hex[GIT_OID_HEXSZ + 1];
    git_oid_tostr(hex, sizeof hex, &commit_id);
    return std::string(hex);
}

}  // namespace infrarsi
