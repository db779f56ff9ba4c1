#include "core/contract/lock.h"

#include "core/base/digest.h"
#include "core/testing/temp_dir.h"

using namespace infrarsi;
namespace fs = std::filesystem;

namespace {

Contract contract_in(const TempDir& folder, std::vector<std::string> frozen) {
    Contract contract;
    contract.root = folder.path();
    contract.file = folder.path() / "infrarsi.yaml";
    contract.frozen = std::move(frozen);
    return contract;
}

std::vector<std::string> paths_of(const Lock& lock) {
    std::vector<std::string> paths;
    for (const auto& [path, digest] : lock.frozen) paths.push_back(path);
    return paths;
}

}  // namespace

TEST_CASE("the lock holds exactly the frozen files", "[contract]") {
    const TempDir folder({{"data/a.txt", "a"},
                          {"data/sub/ü b.txt", "b"},
                          {"data/__pycache__/x.pyc", "x"},
                          {"mydata/a.txt", "a"},
                          {"eval.py", "e"},
                          {"train.py", "t"},
                          {"web/node_modules/m/i.js", "i"},
                          {".git/config", "g"},
                          {".infrarsi/runs/r", "r"},
                          {"infrarsi.yaml", "y"},
                          {"infrarsi.lock", "l"}});
    const auto lock = make_lock(contract_in(folder, {"data/**", "eval.py"}));
    REQUIRE(lock);
    CHECK(paths_of(*lock) == std::vector<std::string>{"data/a.txt", "data/sub/ü b.txt", "eval.py"});
    CHECK(lock->frozen.at("eval.py") == sha256_hex("e"));

    const auto all = make_lock(contract_in(folder, {"**"}));
    REQUIRE(all);
    CHECK(paths_of(*all) ==
          std::vector<std::string>{"data/a.txt", "data/sub/ü b.txt", "eval.py", "mydata/a.txt", "train.py"});
    const auto named = make_lock(contract_in(folder, {"web/node_modules/**"}));
    REQUIRE(named);
    CHECK(paths_of(*named) == std::vector<std::string>{"web/node_modules/m/i.js"});
    CHECK(make_lock(contract_in(folder, {}))->frozen.empty());
    CHECK_FALSE(make_lock(contract_in(folder, {"../x"})));
}

TEST_CASE("links are locked by where they point and never walked", "[contract]") {
    const TempDir folder({{"real/big.bin", "1"}, {"shared/eval.py", "e"}});
    fs::create_directory_symlink(folder / "real", folder / "data");
    fs::create_symlink("shared/eval.py", folder / "eval.py");
    fs::create_symlink("nowhere", folder / "loss.py");
    fs::create_directory_symlink(folder.path(), folder / "real/loop");
    const Contract contract = contract_in(folder, {"data/**", "*.py", "real/**"});
    const auto before = make_lock(contract);
    REQUIRE(before);
    CHECK(paths_of(*before) == std::vector<std::string>{"data", "eval.py", "loss.py", "real/big.bin", "real/loop"});
    folder.write("shared/eval.py", "other");  // the content behind the link counts
    fs::remove(folder / "data");
    fs::create_directory_symlink(folder / "shared", folder / "data");
    const auto after = make_lock(contract);
    REQUIRE(after);
    CHECK(compare_locks(*before, *after) ==
          std::vector<std::string>{"the frozen file data has changed", "the frozen file eval.py has changed"});
}

TEST_CASE("differences from the lock are said one by one", "[contract]") {
    const Lock locked{"c1", {{"a", "1"}, {"b", "2"}, {"c", "3"}}};
    CHECK(compare_locks(locked, locked).empty());
    const Lock now{"c2", {{"a", "1"}, {"b", "9"}, {"d", "4"}}};
    CHECK(compare_locks(locked, now) ==
          std::vector<std::string>{"the contract in infrarsi.yaml is not the one that was locked",
                                   "the frozen file b has changed", "the frozen file c is missing",
                                   "d is new among the frozen files"});
}

TEST_CASE("locks survive the disk", "[contract]") {
    const TempDir folder;
    Lock lock{sha256_hex("c"),
              {{"a b.txt", sha256_hex("1")},
               {"new\nline \\x", sha256_hex("2")},
               {"ü", sha256_hex("3")},
               {"bad\xff", sha256_hex("4")}}};
    REQUIRE(write_lock(lock, folder / "infrarsi.lock"));
    const auto back = read_lock(folder / "infrarsi.lock");
    REQUIRE(back);
    CHECK(*back == lock);
    CHECK_THAT(folder.read("infrarsi.lock"), Catch::StartsWith("# infrarsi.lock: "));
    CHECK(format_lock(*back) == folder.read("infrarsi.lock"));
    const auto missing = read_lock(folder / "none");
    REQUIRE_FALSE(missing);
    CHECK(missing.error().kind() == ErrorKind::not_found);
}

TEST_CASE("a broken lock names its line", "[contract]") {
    const std::string digest = sha256_hex("x");
    const std::string head = "infrarsi-lock-v1\ncontract " + digest + "\n";
    struct Case {
        std::string text;
        int line;
        std::string says;
    };
    const std::vector<Case> cases{
        {"", 1, "expected infrarsi-lock-v1"},
        {"# c\nother\n", 2, "expected infrarsi-lock-v1"},
        {"infrarsi-lock-v1\ncontract 12\n", 2, "its digest"},
        {head + "frozen many\n", 3, "number of files"},
        {head + "frozen 2\n" + digest + "  a\n", 4, "1 of 2 frozen files"},
        {head + "frozen 1\n" + digest + "  a\n" + digest + "  b\n", 5, "more than 1"},
        {head + "frozen 1\n" + digest.substr(1) + "  a\n", 4, "a digest, two spaces and a path"},
        {head + "frozen 1\n" + digest + " a\n", 4, "a digest, two spaces and a path"},
        {head + "frozen 1\n" + digest + "  a\\q\n", 4, "a digest, two spaces and a path"},
        {head + "frozen 2\n" + digest + "  a\n" + digest + "  a\n", 5, "stands twice"},
        {head + "<<<<<<< ours\nfrozen 2\n", 3, "merge conflict"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.text);
        const auto lock = parse_lock(c.text, "infrarsi.lock");
        REQUIRE_FALSE(lock);
        CHECK(lock.error().kind() == ErrorKind::corrupt);
        CHECK(lock.error().place() == Place{"infrarsi.lock", c.line, 0});
        CHECK_THAT(lock.error().message(), Catch::Contains(c.says));
        CHECK_THAT(lock.error().message(), Catch::Contains("infrarsi init"));
    }
    CHECK(parse_lock(head + "# note\r\n\nfrozen 0\r\n", "l"));
}

TEST_CASE("ten thousand frozen files are locked in time", "[contract]") {
    const TempDir folder;
    for (int i = 0; i < 100; ++i) {
        fs::create_directories(folder / fmt::format("data/{}", i));
        for (int j = 0; j < 100; ++j) {
            std::FILE* file = std::fopen((folder / fmt::format("data/{}/{}", i, j)).c_str(), "w");
            REQUIRE(file != nullptr);
            std::fputs("content", file);
            std::fclose(file);
        }
    }
    const auto start = std::chrono::steady_clock::now();
    const auto lock = make_lock(contract_in(folder, {"data/**", "eval.py", "{a,b,c}/**.py"}));
    const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    REQUIRE(lock);
    CHECK(lock->frozen.size() == 10'000);
    INFO(took_s);
    CHECK(took_s < 10);  // about 0.5 s unoptimised on two cores
}
