#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/files.h"
#include "core/exec/target.h"
#include "core/testing/temp_dir.h"
#include "core/trial/materialise.h"
#include "core/trial/source_list.h"

using namespace infrarsi;
namespace fs = std::filesystem;

namespace {

void git(const TempDir& folder, std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c",
                                 "protocol.file.allow=always", "-c", "init.defaultBranch=main"});
    const auto result = run_command(words, {{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}}, folder.path(),
                                    std::chrono::seconds(60));
    REQUIRE(result);
    INFO(result->err);
    REQUIRE(result->exit_code == 0);
}

Contract contract_of(const fs::path& root) {
    Contract contract;
    contract.root = root;
    contract.file = root / "infrarsi.yaml";
    return contract;
}

fs::path link_of(const fs::path& path) {
    std::error_code error;
    return fs::read_symlink(path, error);
}

Snapshot snapshot_of(const TempDir& project, const TempDir& place, const SnapshotOptions& options = {}) {
    auto snapshot = take_snapshot(contract_of(project.path()), place / "snap", options);
    if (!snapshot) FAIL(snapshot.error().describe());
    return *snapshot;
}

}  // namespace

TEST_CASE("a snapshot holds the working tree, not the last commit", "[trial]") {
    const TempDir project({{"train.py", "old"}, {"gone.py", "x"}, {"lib/a.py", "a"}, {".gitignore", "data/\n*.bin\n"}});
    git(project, {"init", "-q"});
    git(project, {"add", "-A"});
    git(project, {"commit", "-qm", "c"});
    project.write("train.py", "new");
    project.write("lib/untracked.py", "u");
    project.write("data/train/x.txt", "big");
    project.write("lib/w.bin", "weights");
    project.write("lib/__pycache__/a.pyc", "cache");
    project.write(".infrarsi/runs/1/events.jsonl", "journal");
    fs::remove(project / "gone.py");
    fs::create_directories(project / "empty");

    const TempDir place;
    const Snapshot snapshot = snapshot_of(project, place);
    CHECK(read_tree(snapshot.dir) ==
          std::map<std::string, std::string>{
              {".gitignore", "data/\n*.bin\n"}, {"train.py", "new"}, {"lib/a.py", "a"}, {"lib/untracked.py", "u"}});
    CHECK(link_of(snapshot.dir / "data") == project / "data");
    CHECK(link_of(snapshot.dir / "lib/w.bin") == project / "lib/w.bin");
    CHECK(fs::is_directory(snapshot.dir / "empty"));
    CHECK_FALSE(fs::exists(snapshot.dir / ".git"));
    CHECK_FALSE(fs::exists(snapshot.dir / ".infrarsi"));
    CHECK_FALSE(fs::exists(snapshot.dir / "lib/__pycache__"));
    CHECK(snapshot.files == 4);
    CHECK(snapshot.linked == 2);
    CHECK(snapshot.digest.size() == 64);
}

TEST_CASE("a tracked file in an ignored folder is a source, its neighbours are data", "[trial]") {
    const TempDir project(
        {{"data/README", "r"}, {"data/x.bin", "x"}, {"data/sub/y.bin", "y"}, {".gitignore", "data\n"}});
    git(project, {"init", "-q"});
    git(project, {"add", "-f", "data/README", ".gitignore"});
    const TempDir place;
    const Snapshot snapshot = snapshot_of(project, place);
    CHECK(read_tree(snapshot.dir) ==
          std::map<std::string, std::string>{{".gitignore", "data\n"}, {"data/README", "r"}});
    CHECK(link_of(snapshot.dir / "data/x.bin") == project / "data/x.bin");
    CHECK(link_of(snapshot.dir / "data/sub") == project / "data/sub");
}

TEST_CASE("a folder without git is taken whole, but for caches and environments", "[trial]") {
    const TempDir project(
        {{"train.py", "t"}, {"venv/pyvenv.cfg", ""}, {"venv/lib/x.py", ""}, {"d/__pycache__/c", "c"}});
    const TempDir place;
    const Snapshot snapshot = snapshot_of(project, place);
    CHECK(read_tree(snapshot.dir) == std::map<std::string, std::string>{{"train.py", "t"}});
    CHECK(link_of(snapshot.dir / "venv") == project / "venv");
    CHECK(fs::is_directory(snapshot.dir / "d"));
}

TEST_CASE("a project in a folder of a repository follows the rules of that repository", "[trial]") {
    const TempDir top({{".gitignore", "*.log\n"}, {"jobs/a/train.py", "t"}, {"jobs/a/run.log", "l"}, {"other/x", "x"}});
    git(top, {"init", "-q"});
    git(top, {"add", "-A"});
    const TempDir place;
    const auto snapshot = take_snapshot(contract_of(top / "jobs/a"), place / "snap");
    REQUIRE(snapshot);
    CHECK(read_tree(snapshot->dir) == std::map<std::string, std::string>{{"train.py", "t"}});
    CHECK(link_of(snapshot->dir / "run.log") == top / "jobs/a/run.log");

    // Ignored altogether: then it is no part of that repository.
    top.write(".gitignore", "jobs/\n");
    const TempDir fresh({{".gitignore", "jobs/\n"}, {"jobs/train.py", "t"}});
    git(fresh, {"init", "-q"});
    const auto ignored = take_snapshot(contract_of(fresh / "jobs"), place / "snap2");
    REQUIRE(ignored);
    CHECK(read_tree(ignored->dir) == std::map<std::string, std::string>{{"train.py", "t"}});
}

TEST_CASE("submodules and repositories within are listed by their own rules", "[trial]") {
    const TempDir library({{"lib.py", "l"}, {".gitignore", "*.so\n"}});
    git(library, {"init", "-q"});
    git(library, {"add", "-A"});
    git(library, {"commit", "-qm", "c"});
    const TempDir project(
        {{"train.py", "t"}, {"nested/n.py", "n"}, {"nested/.gitignore", "secret\n"}, {"nested/secret", "s"}});
    git(project, {"init", "-q"});
    git(project, {"submodule", "-q", "add", library.path().string(), "sub"});
    project.write("sub/built.so", "so");
    git(project, {"init", "-q", "nested"});
    const TempDir place;
    const Snapshot snapshot = snapshot_of(project, place);
    auto files = read_tree(snapshot.dir);
    files.erase(".gitmodules");
    CHECK(files == std::map<std::string, std::string>{{"train.py", "t"},
                                                      {"sub/lib.py", "l"},
                                                      {"sub/.gitignore", "*.so\n"},
                                                      {"nested/n.py", "n"},
                                                      {"nested/.gitignore", "secret\n"}});
    CHECK(link_of(snapshot.dir / "sub/built.so") == project / "sub/built.so");
    CHECK(link_of(snapshot.dir / "nested/secret") == project / "nested/secret");
    CHECK_FALSE(fs::exists(snapshot.dir / "sub/.git"));
}

TEST_CASE("unusual names are only bytes", "[trial]") {
    const std::vector<std::string> names = {"a b.py",     "grün/日本.py", "line\nbreak.py", "'\"$x*?[].py", "-rf",
                                            "bad\xff.py", "\\back.py",    " lead",          "trail "};
    for (const bool with_git : {false, true}) {
        const TempDir project;
        for (const auto& name : names) project.write(name, name);
        if (with_git) {
            git(project, {"init", "-q"});
            git(project, {"add", "-A"});
        }
        const TempDir place;
        const Snapshot snapshot = snapshot_of(project, place);
        CHECK(read_tree(snapshot.dir).size() == names.size());
        for (const auto& name : names) CHECK(read_file(snapshot.dir / name).value() == name);
        CHECK(snapshot.files == static_cast<int>(names.size()));
    }
}

TEST_CASE("links keep their meaning in the copy", "[trial]") {
    const TempDir outside({{"shared.txt", "s"}});
    const TempDir project({{"lib/a.py", "a"}, {"conf/x.yaml", "x"}});
    fs::create_symlink("a.py", project / "lib/same.py");
    fs::create_symlink("../conf", project / "lib/conf");
    fs::create_symlink(project / "lib/a.py", project / "conf/absolute.py");
    fs::create_symlink(outside / "shared.txt", project / "out.txt");
    fs::create_symlink(fs::path("..") / outside.path().filename() / "shared.txt", project / "climb.txt");
    fs::create_symlink("nowhere", project / "broken");
    fs::create_symlink("..", project / "lib/loop");
    const TempDir place;
    const Snapshot snapshot = snapshot_of(project, place);
    CHECK(link_of(snapshot.dir / "lib/same.py") == "a.py");
    CHECK(link_of(snapshot.dir / "lib/conf") == "../conf");
    CHECK(fs::canonical(snapshot.dir / "conf/absolute.py") == fs::canonical(snapshot.dir / "lib/a.py"));
    CHECK(read_file(snapshot.dir / "out.txt").value() == "s");
    CHECK(read_file(snapshot.dir / "climb.txt").value() == "s");
    CHECK(link_of(snapshot.dir / "broken") == "nowhere");
    CHECK(link_of(snapshot.dir / "lib/loop") == "..");
}

TEST_CASE("large and unreadable files are linked, executables stay so", "[trial]") {
    const TempDir project({{"big.txt", std::string(2000, 'x')}, {"small.txt", "x"}, {"run.sh", "#!/bin/sh\n"}});
    fs::permissions(project / "run.sh", fs::perms(0555));
    const TempDir place;
    const Snapshot snapshot = snapshot_of(project, place, {.max_file_bytes = 1000});
    CHECK(link_of(snapshot.dir / "big.txt") == project / "big.txt");
    CHECK(read_tree(snapshot.dir).count("small.txt") == 1);
    CHECK((fs::status(snapshot.dir / "run.sh").permissions() & fs::perms(0777)) == fs::perms(0755));
    CHECK(fs::last_write_time(snapshot.dir / "small.txt") == fs::last_write_time(project / "small.txt"));
    // An own copy: a job that writes in place must not write into the user's file.
    CHECK(fs::hard_link_count(snapshot.dir / "small.txt") == 1);
}

TEST_CASE("the digest of a snapshot is that of its content", "[trial]") {
    const TempDir project({{"a", "1"}, {"b/c", "2"}});
    const TempDir one, two, three;
    const std::string digest = snapshot_of(project, one).digest;
    CHECK(digest == snapshot_of(project, two).digest);
    project.write("b/c", "3");
    CHECK(digest != snapshot_of(project, three).digest);
}

TEST_CASE("a snapshot leaves no half of itself and refuses a used place", "[trial]") {
    const TempDir project({{"a", "1"}});
    const TempDir place;
    place.write("snap/used", "");
    auto refused = take_snapshot(contract_of(project.path()), place / "snap");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind() == ErrorKind::conflict);
    const auto missing = take_snapshot(contract_of(project / "none"), place / "snap2");
    REQUIRE_FALSE(missing);
    CHECK(missing.error().kind() == ErrorKind::not_found);
    CHECK_FALSE(fs::exists(place / "snap2"));
    // A snapshot inside the project does not take itself along.
    const auto inside = take_snapshot(contract_of(project.path()), project / "work/snap");
    REQUIRE(inside);
    CHECK(inside->files == 1);
}

TEST_CASE("a large project is a matter of seconds", "[.][trial-scale]") {
    const TempDir project;
    for (int folder = 0; folder < 100; ++folder) {
        for (int file = 0; file < 100; ++file) {
            project.write(fmt::format("d{}/f{}.py", folder, file), fmt::format("x = {}\n", folder * file));
        }
    }
    git(project, {"init", "-q"});
    const auto timed = [](const char* what, const auto& action) {
        const auto start = std::chrono::steady_clock::now();
        action();
        WARN(what << ": " << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s");
    };
    const TempDir place;
    timed("list untracked", [&] { CHECK(list_sources(project.path(), "/")->files.size() == 10000); });
    git(project, {"add", "-A"});
    timed("list tracked", [&] { CHECK(list_sources(project.path(), "/")->files.size() == 10000); });
    timed("snapshot", [&] { CHECK(snapshot_of(project, place).files == 10000); });
}
