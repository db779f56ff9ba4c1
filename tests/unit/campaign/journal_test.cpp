#include "core/campaign/journal.h"

#include <fstream>

#include "core/base/files.h"
#include "core/campaign/run_lock.h"
#include "core/campaign/user_key.h"
#include "core/testing/temp_dir.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

class FakeClock final : public Clock {
public:
    [[nodiscard]] double wall_s() const override { return 1'000'000 + seconds; }
    [[nodiscard]] std::chrono::nanoseconds monotonic() const override {
        return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
    }
    void sleep_for(std::chrono::nanoseconds duration) override {
        seconds += std::chrono::duration<double>(duration).count();
    }
    double seconds = 0;
};

std::filesystem::path three_events(const TempDir& dir, Clock& clock) {
    auto journal = Journal::create(dir.path() / "run", "key", clock);
    REQUIRE(journal);
    REQUIRE(journal->append("first", {{"n", 1}}));
    REQUIRE(journal->append("second", {{"text", "ü \n \"quoted\""}}));
    REQUIRE(journal->append("third", {{"nan", std::nan("")}}));
    return dir.path() / "run";
}

}  // namespace

TEST_CASE("a journal reads back what was written", "[campaign]") {
    TempDir dir;
    FakeClock clock;
    const auto run = three_events(dir, clock);
    const auto read = read_journal(run, "key");
    REQUIRE(read);
    REQUIRE(read->events.size() == 3);
    CHECK_FALSE(read->torn);
    CHECK(read->events[1]["text"] == "ü \n \"quoted\"");
    CHECK(read->events[2]["nan"].is_null());
    CHECK(read->events[2]["prev"] == read->events[1]["mac"]);
}

TEST_CASE("a torn last line is dropped and the chain goes on", "[campaign]") {
    TempDir dir;
    FakeClock clock;
    const auto run = three_events(dir, clock);
    const std::string whole = *read_file(run / "events.jsonl");
    const std::size_t second_end = whole.find('\n', whole.find('\n') + 1) + 1;
    // Wherever the last line is cut, the two before it stay.
    for (std::size_t cut = second_end; cut < whole.size(); cut += 7) {
        REQUIRE(write_file(run / "events.jsonl", whole.substr(0, cut)));
        auto journal = Journal::open(run, "key", clock);
        REQUIRE(journal);
        CHECK(journal->events().size() == 2);
        REQUIRE(journal->append("again", json::object()));
        CHECK(read_journal(run, "key")->events.size() == 3);
    }
}

TEST_CASE("an edited, removed, moved or foreign line is named", "[campaign]") {
    TempDir dir;
    FakeClock clock;
    const auto run = three_events(dir, clock);
    const std::string whole = *read_file(run / "events.jsonl");
    const std::size_t first_end = whole.find('\n') + 1;
    const std::size_t second_end = whole.find('\n', first_end) + 1;
    std::string edited = whole;
    edited.replace(edited.find("\"n\":1"), 5, "\"n\":2");
    const std::map<std::string, std::pair<std::string, int>> cases = {
        {"edited", {edited, 1}},
        {"first removed", {whole.substr(first_end), 1}},
        {"middle removed", {whole.substr(0, first_end) + whole.substr(second_end), 2}},
        {"repeated", {whole.substr(0, first_end) + whole, 2}},
    };
    for (const auto& [name, broken] : cases) {
        INFO(name);
        REQUIRE(write_file(run / "events.jsonl", broken.first));
        const auto read = read_journal(run, "key");
        REQUIRE_FALSE(read);
        CHECK(read.error().kind() == ErrorKind::corrupt);
        CHECK(read.error().place()->line == broken.second);
    }
    REQUIRE(write_file(run / "events.jsonl", whole));
    CHECK(read_journal(run, "another key").error().kind() == ErrorKind::corrupt);
}

TEST_CASE("a run is created once", "[campaign]") {
    TempDir dir;
    FakeClock clock;
    const auto run = three_events(dir, clock);
    CHECK(Journal::create(run, "key", clock).error().kind() == ErrorKind::conflict);
}

TEST_CASE("one runner at a time, and a dead one's lock is free", "[campaign]") {
    TempDir dir;
    const auto file = dir.path() / "lock";
    {
        auto lock = RunLock::acquire(file, "run-a");
        REQUIRE(lock);
        const auto second = RunLock::acquire(file, "run-b");
        REQUIRE_FALSE(second);
        CHECK(second.error().kind() == ErrorKind::conflict);
        CHECK(second.error().message().find("run-a") != std::string::npos);
        // Being refused leaves the owner's name in the file.
        const auto third = RunLock::acquire(file, "run-c");
        REQUIRE_FALSE(third);
        CHECK(third.error().message().find("run-a") != std::string::npos);
        RunLock moved = std::move(*lock);
        CHECK_FALSE(RunLock::acquire(file, "run-d"));
        *lock = std::move(moved);
        CHECK_FALSE(RunLock::acquire(file, "run-e"));
    }
    REQUIRE(write_file(file, "infrarsi process 1 (run of a dead one)\n"));
    CHECK(RunLock::acquire(file, "run-c"));
}

TEST_CASE("a project has one lock, wherever its runs are kept", "[campaign]") {
    TempDir dir;
    const auto root = dir.path() / "project";
    {
        auto lock = RunLock::of_project(root, dir.path() / "a/runs", "run-a");
        REQUIRE(lock);
        CHECK(std::filesystem::is_directory(dir.path() / "a/runs"));
        CHECK_FALSE(std::filesystem::exists(dir.path() / "a/lock"));
        CHECK(*read_file(root / ".infrarsi/.gitignore") == "*\n");
        const auto second = RunLock::of_project(root, dir.path() / "b/runs", "run-b");
        REQUIRE_FALSE(second);
        CHECK(second.error().kind() == ErrorKind::conflict);
    }
    // A file in the place of the folder stands for a project that cannot be written to.
    REQUIRE(write_file(dir.path() / "fixed", ""));
    CHECK(RunLock::of_project(dir.path() / "fixed", dir.path() / "c", "run-c"));
    const auto nowhere = RunLock::of_project(root, dir.path() / "fixed/runs", "run-d");
    REQUIRE_FALSE(nowhere);
    CHECK(nowhere.error().message().find("--out") != std::string::npos);
}

TEST_CASE("the key is made once, kept private, and refused when others can read it", "[campaign]") {
    TempDir dir;
    const auto config = dir.path() / "config";
    const auto key = user_key(config);
    REQUIRE(key);
    CHECK(key->size() == 64);
    CHECK(*user_key(config) == *key);
    std::filesystem::permissions(config / "key", std::filesystem::perms(0644));
    CHECK(user_key(config).error().message().find("chmod 600") != std::string::npos);
    std::filesystem::permissions(config / "key", std::filesystem::perms(0600));
    REQUIRE(write_file(config / "key", "short\n"));
    CHECK(user_key(config).error().kind() == ErrorKind::corrupt);
}
