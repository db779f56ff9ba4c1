#include "core/trial/materialise.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "core/base/files.h"
#include "core/testing/temp_dir.h"
#include "core/text/diff.h"
#include "core/trial/trial_tree.h"

using namespace infrarsi;
namespace fs = std::filesystem;

namespace {

const std::map<std::string, std::string> kProject = {
    {"infrarsi.yaml", "schema: infrarsi-project-v1\n"},
    {"train.sh", "#!/bin/bash\npython3 train.py --micro-batch-size 2 --lr 0.1\n"},
    {"train.py", "import model\n\n\ndef main():\n    return 1\n\n\nmain()\n"},
    {"model/net.py", "width = 8\ndepth = 2\n"},
    {"loss.py", "def loss():\n    return 0\n"},
    {"eval/run.py", "print(1)\n"},
    {"README.md", "text\n"}};

Contract contract_of(const fs::path& root) {
    Contract contract;
    contract.root = root;
    contract.file = root / "infrarsi.yaml";
    contract.launch.command = "bash train.sh";
    contract.editable = {"train.py", "model/**", "new/**"};
    contract.frozen = {"loss.py", "eval/**", "data/**"};
    Knob knob;
    knob.name = "micro_batch";
    knob.spelling = "--micro-batch-size";
    knob.values = {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}};
    knob.reference = std::int64_t{2};
    contract.knobs = {knob};
    return contract;
}

Patch edit(const TempDir& project, const std::string& path, const std::string& from, const std::string& to) {
    const std::string before = project.read(path);
    std::string after = before;
    const auto at = after.find(from);
    REQUIRE(at != std::string::npos);
    after.replace(at, from.size(), to);
    return {"edit " + path, make_diff(path, &before, &after), "user"};
}

Patch create(const std::string& path, const std::string& text) {
    return {"create " + path, make_diff(path, nullptr, &text), "user"};
}

Realisation realised(const TempDir& project, const Candidate& candidate) {
    auto result = realise(contract_of(project.path()), project.path(), candidate);
    if (!result) FAIL(result.error().describe());
    return *result;
}

Error refused(const TempDir& project, const Candidate& candidate) {
    auto result = realise(contract_of(project.path()), project.path(), candidate);
    if (result) FAIL("this candidate was expected to be refused");
    return result.error();
}

}  // namespace

TEST_CASE("the reference changes nothing", "[trial]") {
    const TempDir project(kProject);
    const Realisation realisation = realised(project, {});
    CHECK(realisation.files.empty());
    CHECK(realisation.removed.empty());
    CHECK(realisation.command == "bash train.sh");
}

TEST_CASE("patches refer to the user's text and settings are edited into the result", "[trial]") {
    const TempDir project(kProject);
    const Realisation realisation =
        realised(project, {{{"micro_batch", std::int64_t{4}}},
                           {edit(project, "train.py", "return 1", "return 2"), create("new/x.py", "x = 1\n")}});
    CHECK(realisation.files.at("train.py").find("return 2") != std::string::npos);
    CHECK(realisation.files.at("new/x.py") == "x = 1\n");
    CHECK(realisation.files.at("train.sh") == "#!/bin/bash\npython3 train.py --micro-batch-size 4 --lr 0.1\n");
    CHECK(realisation.files.size() == 3);
    CHECK(read_tree(project.path()) == kProject);

    // Both in one file: the patch moves the line that the setting then edits.
    Contract contract = contract_of(project.path());
    contract.editable.push_back("train.sh");
    const auto both = realise(contract, project.path(),
                              {{{"micro_batch", std::int64_t{4}}},
                               {edit(project, "train.sh", "#!/bin/bash\n", "#!/bin/bash\nset -e\nexport A=1\n")}});
    REQUIRE(both);
    CHECK(both->files.at("train.sh") ==
          "#!/bin/bash\nset -e\nexport A=1\npython3 train.py --micro-batch-size 4 --lr 0.1\n");
}

TEST_CASE("patches stack, and a file may go", "[trial]") {
    const TempDir project(kProject);
    const Patch first = edit(project, "model/net.py", "width = 8", "width = 16");
    TempDir patched(kProject);
    patched.write("model/net.py", "width = 16\ndepth = 2\n");
    const Patch second = edit(patched, "model/net.py", "width = 16\n", "width = 16\nheads = 4\n");
    CHECK(realised(project, {{}, {first, second}}).files.at("model/net.py") == "width = 16\nheads = 4\ndepth = 2\n");
    CHECK(refused(project, {{}, {second}}).kind() == ErrorKind::conflict);

    const std::string text = project.read("model/net.py");
    const Patch removal{"remove", make_diff("model/net.py", &text, nullptr), "user"};
    const Realisation gone = realised(project, {{}, {removal}});
    CHECK(gone.removed == std::vector<std::string>{"model/net.py"});
    CHECK(gone.files.empty());
    CHECK(refused(project, {{}, {removal, first}}).kind() == ErrorKind::conflict);
    CHECK(refused(project, {{}, {create("model/net.py", "x\n")}}).kind() == ErrorKind::conflict);
}

TEST_CASE("frozen files and what is outside the scope stay as they are", "[trial]") {
    const TempDir project(kProject);
    for (const char* path : {"loss.py", "eval/run.py", "infrarsi.yaml"}) {
        INFO(path);
        const std::string text = project.read(path);
        const std::string more = text + "x = 1\n";
        const Error error = refused(project, {{}, {{"t", make_diff(path, &text, &more), "user"}}});
        CHECK(error.kind() == ErrorKind::frozen);
        CHECK(error.message().find(path) != std::string::npos);
    }
    CHECK(refused(project, {{}, {create("data/new.bin", "x\n")}}).kind() == ErrorKind::frozen);
    const Error outside = refused(project, {{}, {edit(project, "README.md", "text", "other")}});
    CHECK(outside.kind() == ErrorKind::frozen);
    CHECK(outside.message().find("scope.editable") != std::string::npos);

    Contract contract = contract_of(project.path());
    contract.frozen.push_back("train.sh");
    const auto setting = realise(contract, project.path(), {{{"micro_batch", std::int64_t{4}}}, {}});
    REQUIRE_FALSE(setting);
    CHECK(setting.error().kind() == ErrorKind::frozen);
    CHECK(setting.error().message().find("train.sh") != std::string::npos);
}

TEST_CASE("patched Python must still parse", "[trial]") {
    const TempDir project(kProject);
    const Error error = refused(project, {{}, {edit(project, "train.py", "return 1", "return (1")}});
    CHECK(error.kind() == ErrorKind::invalid_input);
    REQUIRE(error.place());
    CHECK(error.place()->path == "train.py");
    CHECK(error.place()->line >= 4);
    // What did not parse before (a grammar older than the code) is not held against a patch elsewhere.
    TempDir odd(kProject);
    odd.write("model/net.py", "width = 8\nx = = 3\ndepth = 2\n");
    CHECK(realised(odd, {{}, {edit(odd, "model/net.py", "width = 8", "width = 16")}}).files.size() == 1);
}

TEST_CASE("a patch through a symbolic link is refused", "[trial]") {
    const TempDir outside({{"victim.py", "v = 1\n"}});
    const TempDir project(kProject);
    fs::create_symlink(outside.path(), project / "model/link");
    fs::create_symlink(outside / "victim.py", project / "model/alias.py");
    const std::string before = "v = 1\n", after = "v = 2\n";
    for (const char* path : {"model/link/victim.py", "model/alias.py"}) {
        INFO(path);
        CHECK(refused(project, {{}, {{"t", make_diff(path, &before, &after), "user"}}}).kind() ==
              ErrorKind::invalid_input);
    }
    CHECK(outside.read("victim.py") == before);
}

TEST_CASE("a patch of what cannot be a file is refused before there is a tree", "[trial]") {
    const TempDir project(kProject);
    const std::string long_name = "model/" + std::string(300, 'n') + ".py";
    for (const std::string& path : {std::string("train.py/x.py"), std::string("model"), long_name}) {
        INFO(path);
        Contract contract = contract_of(project.path());
        contract.editable = {"**"};
        const auto made = realise(contract, project.path(), {{}, {create(path, "x = 1\n")}});
        REQUIRE_FALSE(made);
        CHECK((made.error().kind() == ErrorKind::conflict || made.error().kind() == ErrorKind::invalid_input));
    }
    Contract contract = contract_of(project.path());
    contract.editable = {"**"};
    for (const auto& [first, second] : {std::pair("new", "new/x.py"), std::pair("new/x.py", "new")}) {
        const auto made = realise(contract, project.path(), {{}, {create(first, "x\n"), create(second, "x = 1\n")}});
        REQUIRE_FALSE(made);
        CHECK(made.error().kind() == ErrorKind::conflict);
    }
}

TEST_CASE("a snapshot's content has a digest that an edit changes", "[trial]") {
    const TempDir project(kProject);
    const TempDir place;
    const Contract contract = contract_of(project.path());
    REQUIRE(take_snapshot(contract, place / "snapshot"));
    const auto before = snapshot_content_digest(contract, place / "snapshot");
    REQUIRE(before);
    CHECK(*snapshot_content_digest(contract, place / "snapshot") == *before);
    REQUIRE(write_file(place / "snapshot" / "train.py", "def step():\n    return 7\n"));
    CHECK(*snapshot_content_digest(contract, place / "snapshot") != *before);
}

TEST_CASE("a tree is the snapshot with the change in it and frozen files write-protected", "[trial]") {
    const TempDir project(kProject);
    const TempDir place;
    const Contract contract = contract_of(project.path());
    const auto snapshot = take_snapshot(contract, place / "snap");
    REQUIRE(snapshot);
    const auto before = read_tree(snapshot->dir);
    Realisation realisation;
    realisation.files = {{"train.py", "changed"}, {"new/deep/x.py", "x"}};
    realisation.removed = {"README.md"};
    REQUIRE(materialise(*snapshot, contract, realisation, place / "tree"));
    auto wanted = kProject;
    wanted["train.py"] = "changed";
    wanted["new/deep/x.py"] = "x";
    wanted.erase("README.md");
    CHECK(read_tree(place / "tree") == wanted);
    CHECK(read_tree(snapshot->dir) == before);
    for (const auto& [path, text] : wanted) {
        INFO(path);
        const bool is_frozen = path == "loss.py" || path == "eval/run.py" || path == "infrarsi.yaml";
        const auto writable = fs::status(place / ("tree/" + path)).permissions() & fs::perms::owner_write;
        CHECK((writable == fs::perms::none) == is_frozen);
    }
    const auto again = materialise(*snapshot, contract, realisation, place / "tree");
    REQUIRE_FALSE(again);
    CHECK(again.error().kind() == ErrorKind::conflict);
    REQUIRE(remove_tree(place / "tree"));
}

TEST_CASE("writing into linked data gives the tree its own file", "[trial]") {
    const TempDir project(kProject);
    project.write(".git/x", "");  // not a repository; nothing is ignored
    const TempDir data({{"sub/config.yaml", "a: 1\n"}, {"sub/big.bin", "b"}});
    fs::create_symlink(data.path(), project / "model/data");
    const TempDir place;
    const Contract contract = contract_of(project.path());
    const auto snapshot = take_snapshot(contract, place / "snap");
    REQUIRE(snapshot);
    Realisation realisation;
    realisation.files = {{"model/data/sub/config.yaml", "a: 2\n"}};
    REQUIRE(materialise(*snapshot, contract, realisation, place / "tree"));
    CHECK(read_file(place / "tree/model/data/sub/config.yaml").value() == "a: 2\n");
    CHECK(read_file(place / "tree/model/data/sub/big.bin").value() == "b");
    CHECK(data.read("sub/config.yaml") == "a: 1\n");
}

TEST_CASE("a tree knows its frozen files, also those in linked data", "[trial]") {
    const TempDir project(kProject);
    const TempDir data({{"a.bin", "a"}, {"deep/b.bin", "b"}});
    fs::create_symlink(data.path(), project / "data");
    const TempDir place;
    const Contract contract = contract_of(project.path());
    const auto snapshot = take_snapshot(contract, place / "snap");
    REQUIRE(snapshot);
    REQUIRE(materialise(*snapshot, contract, {}, place / "tree"));
    const auto facts = inspect_tree(contract, place / "tree");
    REQUIRE(facts);
    CHECK(facts->frozen ==
          std::vector<std::string>{"data/a.bin", "data/deep/b.bin", "eval/run.py", "infrarsi.yaml", "loss.py"});
    // All that can be in eval/ is frozen: one mount. The linked data is outside the tree.
    CHECK(facts->frozen_mounts == std::vector<std::string>{"eval", "infrarsi.yaml", "loss.py"});
    REQUIRE(facts->linked.size() == 1);
    CHECK(fs::canonical(facts->linked[0]) == data.path());
    CHECK(facts->digest.size() == 64);

    const FrozenState before = stamp_frozen(place / "tree", facts->frozen);
    CHECK(stamp_frozen(place / "tree", facts->frozen, &before).at("loss.py").same_file_state(before.at("loss.py")));
    // Written and put back: the content is the same, the state is not.
    const std::string text = kProject.at("loss.py");
    fs::permissions(place / "tree/loss.py", fs::perms(0644));
    REQUIRE(write_file(place / "tree/loss.py", "x"));
    REQUIRE(write_file(place / "tree/loss.py", text));
    fs::remove(place / "tree/eval/run.py");
    const FrozenState after = stamp_frozen(place / "tree", facts->frozen, &before);
    CHECK(after.at("loss.py").digest == before.at("loss.py").digest);
    CHECK_FALSE(after.at("loss.py").same_file_state(before.at("loss.py")));
    CHECK(after.at("eval/run.py").digest == "missing");
}
