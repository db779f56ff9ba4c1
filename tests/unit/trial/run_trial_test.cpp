#include "core/trial/run_trial.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/exec/process.h"
#include "core/testing/temp_dir.h"
#include "core/trial/agent_run.h"

using namespace infrarsi;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* kKey = "a key of this test";

// /tmp is private to a sandboxed job, so what holds there shows little of what holds elsewhere.
enum class Where { tmp, elsewhere };

class Place {
public:
    explicit Place(Where where) {
        if (where == Where::tmp) {
            temporary_.emplace();
            path_ = temporary_->path();
        } else {
            path_ = fs::canonical(fs::current_path()) / ("trial-test-" + random_hex(4));
            fs::create_directories(path_);
        }
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { (void)remove_tree(path_); }
    [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::optional<TempDir> temporary_;
    fs::path path_;
};

// A project, a place for its campaign and the user's key, with the real agent.
struct Campaign {
    Place home;
    fs::path root, run_dir, key_dir;
    Contract contract;
    TrialSetup setup;

    explicit Campaign(const std::map<std::string, std::string>& files, const std::string& folder = "project",
                      Where where = Where::tmp)
        : home(where) {
        root = home / folder;
        fs::create_directories(root);
        write_tree(root, files);
        key_dir = home / "keys";
        write_tree(key_dir, {{"key", kKey}});
        run_dir = root / ".infrarsi/runs/r1";
        write_tree(run_dir, {{"events.jsonl", "the journal\n"}});
        contract.root = root;
        contract.file = root / "infrarsi.yaml";
        contract.launch.command = "bash job.sh";
        contract.launch.updates = 3;
        contract.launch.warmup = 1;
        contract.editable = {"job.sh"};
        contract.frozen = {"loss.py", "eval/**"};
        setup.contract = &contract;
        setup.campaign = "r1";
        setup.nonce = std::string(32, 'a');
        setup.adapters_dir = fs::path(INFRARSI_SOURCE_DIR) / "adapters";
        setup.trials_dir = run_dir / "trials";
        setup.key_dir = key_dir;
        for (const char* name : {"PATH", "HOME", "LANG", "PYENV_ROOT", "PYENV_VERSION"}) {
            if (const char* value = std::getenv(name)) setup.parent_env[name] = value;
        }
        setup.timeout_s = 60;
        setup.silence_s = 60;
    }

    void snapshot() {
        auto taken = take_snapshot(contract, run_dir / "snapshot");
        if (!taken) FAIL(taken.error().describe());
        setup.snapshot = *taken;
    }

    Expected<Receipt> run(const std::string& id, const Candidate& candidate = {}, std::stop_token stop = {},
                          const std::function<void(const TrialProgress&)>& progress = nullptr) {
        if (setup.snapshot.dir.empty()) snapshot();
        const auto target = make_local_target();
        SystemClock clock;
        return run_trial(setup, {id, "candidate", candidate}, *target, clock, kKey, std::move(stop), progress);
    }

    Receipt receipt(const std::string& id, const Candidate& candidate = {}) {
        auto result = run(id, candidate);
        if (!result) FAIL(result.error().describe());
        return *result;
    }

    [[nodiscard]] fs::path trial(const std::string& id) const { return setup.trials_dir / id; }
    [[nodiscard]] std::string output(const std::string& id) const {
        return read_file(trial(id) / "stdout.log").value_or("");
    }
};

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 30s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(10ms);
    }
    return true;
}

Candidate patched_job(const std::string& before, const std::string& after) {
    return {{}, {{"edit", "--- a/job.sh\n+++ b/job.sh\n@@ -1 +1 @@\n-" + before + "\n+" + after + "\n", "user"}}};
}

// A file system of its own; nothing where that is not allowed.
class Mount {
public:
    Mount(fs::path folder, const std::string& options) : folder_(std::move(folder)) {
        fs::create_directories(folder_);
        const auto result =
            run_command({"mount", "-t", "tmpfs", "-o", options, "tmpfs", folder_.string()}, kEnv, "/", 10s);
        is_there_ = result && result->exit_code == 0;
    }
    Mount(const Mount&) = delete;
    Mount& operator=(const Mount&) = delete;
    ~Mount() {
        if (is_there_) (void)run_command({"umount", "-l", folder_.string()}, kEnv, "/", 10s);
    }
    void make_read_only() const { (void)run_command({"mount", "-o", "remount,ro", folder_.string()}, kEnv, "/", 10s); }
    [[nodiscard]] bool is_there() const { return is_there_; }

private:
    inline static const std::map<std::string, std::string> kEnv{{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}};
    fs::path folder_;
    bool is_there_ = false;
};

}  // namespace

TEST_CASE("a trial ends in a signed receipt", "[trial]") {
    Campaign campaign({{"job.sh", "echo value one; echo $PWD\n"}, {"loss.py", "x = 1\n"}, {"eval/run.py", "y\n"}});
    const Receipt receipt = campaign.receipt("t1", patched_job("echo value one; echo $PWD", "echo value two"));
    CHECK(receipt.execution.error == "");
    CHECK(receipt.execution.exit_code == 0);
    CHECK(receipt.execution.duration_s > 0);
    CHECK(receipt.trial == "t1");
    CHECK(receipt.campaign == "r1");
    CHECK(receipt.role == "candidate");
    CHECK(receipt.updates == 3);
    CHECK(receipt.warmup == 1);
    CHECK(receipt.contract_digest == contract_digest(campaign.contract));
    CHECK(receipt.tree_digest.size() == 64);
    CHECK(receipt.frozen_before ==
          std::map<std::string, std::string>{{"loss.py", sha256_hex("x = 1\n")}, {"eval/run.py", sha256_hex("y\n")}});
    CHECK(receipt.frozen_after == receipt.frozen_before);
    CHECK(receipt.frozen_touched.empty());
    CHECK(receipt.environment.count("cpu") == 1);
    CHECK(campaign.output("t1") == "value two\n");

    const auto file = read_file(campaign.trial("t1") / "receipt.json");
    REQUIRE(file);
    const auto opened = open_receipt(*file, kKey, "receipt.json");
    REQUIRE(opened);
    CHECK(canonical_json(to_json(*opened)) == canonical_json(to_json(receipt)));
    CHECK(file->find(kKey) == std::string::npos);
    CHECK(fs::exists(campaign.trial("t1") / "candidate.json"));
    for (const char* gone : {"tree", "scratch", "spec.json", "prepared.json"}) {
        INFO(gone);
        CHECK_FALSE(fs::exists(campaign.trial("t1") / gone));
    }
    CHECK(read_file(campaign.root / "job.sh").value() == "echo value one; echo $PWD\n");

    // The reference has another tree.
    CHECK(campaign.receipt("t2").tree_digest != receipt.tree_digest);
}

TEST_CASE("a job that fails is a receipt that says so", "[trial]") {
    Campaign campaign({{"job.sh", "echo no >&2; exit 3\n"}});
    const Receipt failed = campaign.receipt("t1");
    CHECK(failed.execution.exit_code == 3);
    CHECK(failed.execution.error == "");
    const Receipt killed = campaign.receipt("t2", patched_job("echo no >&2; exit 3", "kill -9 $$"));
    CHECK(killed.execution.signal == 9);
    CHECK_FALSE(killed.execution.exit_code);

    campaign.setup.timeout_s = 1;
    const Receipt slow = campaign.receipt("t3", patched_job("echo no >&2; exit 3", "sleep 60"));
    CHECK(slow.execution.timed_out == "wall");
    campaign.setup.timeout_s = 60;
    campaign.setup.silence_s = 1;
    CHECK(campaign.receipt("t4", patched_job("echo no >&2; exit 3", "sleep 60")).execution.timed_out == "silence");
}

TEST_CASE("a hostile job reaches nothing but its own tree", "[trial]") {
    const std::string attacks =
        "try() { if eval \"$2\" 2>/dev/null >/dev/null; then echo \"REACHED $1\"; else echo \"refused $1\"; fi; }\n"
        "try repo 'echo x > \"$REPO/job.sh\"'\n"
        "try climb 'echo x > ../../../../../../job.sh'\n"
        "try new 'echo x > \"$REPO/new\"'\n"
        "try data 'echo x > venv/lib.py'\n"
        "try frozen 'chmod 644 loss.py && echo x > loss.py'\n"
        "try frozen-away 'mv loss.py other.py'\n"
        "try frozen-folder 'mv eval other'\n"
        "try remount 'mount -o remount,bind,rw loss.py'\n"
        "try key 'cat \"$KEYS/key\"'\n"
        "try journal 'cat ../../../events.jsonl'\n"
        "try journal-by-name 'cat \"$REPO/.infrarsi/runs/r1/events.jsonl\"'\n"
        "try spec 'cat ../spec.json'\n"
        "try prepared 'cat ../prepared.json'\n"
        "try receipt 'cat ../../t0/receipt.json'\n"
        "try other-run 'ls \"$REPO/.infrarsi/runs/r0\"'\n"
        "try secret 'env | grep -q hunter2'\n"
        "try other-env 'cat /proc/[0-9]*/environ | grep -q hunter2'\n"
        "try home 'echo x > ~/.infrarsi-test-file'\n"
        "try OWN 'echo x > result.txt && echo x > /tmp/mine-$$'\n"
        "try DATA 'grep mine venv/lib.py'\n"
        "try TEMP mktemp\n";
    for (const Where where : {Where::elsewhere, Where::tmp}) {
        INFO((where == Where::tmp ? "the project in /tmp" : "the project elsewhere"));
        Campaign campaign({{"job.sh", attacks},
                           {"loss.py", "x = 1\n"},
                           {"eval/run.py", "y\n"},
                           {"venv/pyvenv.cfg", ""},
                           {"venv/lib.py", "mine"},
                           {".infrarsi/runs/r0/events.jsonl", "another run"}},
                          "project", where);
        campaign.contract.launch.env = {{"REPO", campaign.root.string()}, {"KEYS", campaign.key_dir.string()}};
        campaign.setup.parent_env["MY_SECRET"] = "hunter2";
        campaign.setup.parent_env["AWS_SECRET_ACCESS_KEY"] = "hunter2";
        write_tree(campaign.trial("t0"), {{"receipt.json", "{}"}});
        const auto before = read_tree(campaign.root);
        const Receipt receipt = campaign.receipt("t1");
        if (receipt.isolation.sandbox != "bwrap") {
            WARN("skipped: " << receipt.isolation.why);
            return;
        }
        CHECK(receipt.isolation.frozen_readonly);
        CHECK(receipt.isolation.why == "");
        CHECK(receipt.execution.exit_code == 0);
        CHECK(receipt.frozen_touched.empty());
        CHECK(receipt.frozen_after == receipt.frozen_before);

        const std::string output = campaign.output("t1");
        INFO(output);
        std::set<std::string> reached;
        std::istringstream lines(output);
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("REACHED ")) reached.insert(line.substr(8));
        }
        // In a private /tmp the way to the tree is made of empty folders of the job's own; nothing is there but them.
        if (campaign.root.string().starts_with("/tmp/")) {
            for (const char* harmless : {"repo", "climb", "new"}) reached.erase(harmless);
        }
        CHECK(reached == std::set<std::string>{"OWN", "DATA", "TEMP"});
        const auto after = read_tree(campaign.root);
        for (const auto& [path, text] : before) {
            INFO(path);
            REQUIRE(after.count(path) == 1);
            CHECK(after.at(path) == text);
        }
        CHECK(after.count("new") == 0);
    }
}

TEST_CASE("without a sandbox the receipt says what did not hold, and tells of frozen files that were put back",
          "[trial]") {
    Campaign campaign({{"job.sh", "cp -p loss.py keep; chmod 644 loss.py; echo x > loss.py; cp -p keep loss.py\n"},
                       {"loss.py", "x = 1\n"},
                       {"eval/run.py", "y\n"}});
    campaign.contract.isolation.sandbox = Sandbox::none;
    const Receipt receipt = campaign.receipt("t1");
    CHECK(receipt.isolation.sandbox == "none");
    CHECK_FALSE(receipt.isolation.frozen_readonly);
    CHECK(receipt.isolation.why.find("frozen files") != std::string::npos);
    CHECK(receipt.frozen_after == receipt.frozen_before);
    CHECK(receipt.frozen_touched == std::vector<std::string>{"loss.py"});

    const std::string job = campaign.contract.root / "job.sh";
    const Receipt removed =
        campaign.receipt("t2", patched_job(read_file(job).value().substr(0, read_file(job).value().size() - 1),
                                           "rm -f eval/run.py; echo $TMPDIR; touch $TMPDIR/x"));
    CHECK(removed.frozen_after.at("eval/run.py") == "missing");
    CHECK(removed.frozen_touched == std::vector<std::string>{"eval/run.py"});
    const std::string temporary = campaign.output("t2").substr(0, campaign.output("t2").find('\n'));
    CHECK(temporary.find("/infrarsi-") != std::string::npos);
    CHECK_FALSE(fs::exists(temporary));
}

TEST_CASE("a stopped trial is cancelled at once and can be run again", "[trial]") {
    Campaign campaign({{"job.sh", "echo begun; sleep 60\n"}});
    std::stop_source source;
    campaign.snapshot();
    std::jthread stopper([&] {
        (void)wait_until([&] { return campaign.output("t1") == "begun\n"; });
        source.request_stop();
    });
    const auto start = std::chrono::steady_clock::now();
    const auto stopped = campaign.run("t1", {}, source.get_token());
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().kind() == ErrorKind::cancelled);
    CHECK(std::chrono::steady_clock::now() - start < 45s);
    const auto receipt = open_receipt(read_file(campaign.trial("t1") / "receipt.json").value(), kKey, "receipt.json");
    REQUIRE(receipt);
    CHECK(receipt->execution.cancelled);
    CHECK_FALSE(fs::exists(campaign.trial("t1") / "tree"));

    CHECK(campaign.run("t2", {}, source.get_token()).error().kind() == ErrorKind::cancelled);
    CHECK_FALSE(fs::exists(campaign.trial("t2")));

    const Receipt again = campaign.receipt("t1", patched_job("echo begun; sleep 60", "echo again"));
    CHECK_FALSE(again.execution.cancelled);
    CHECK(campaign.output("t1") == "again\n");
}

TEST_CASE("a trial whose runner was killed is taken over", "[trial]") {
    for (const bool has_finished : {false, true}) {
        INFO((has_finished ? "finished" : "running"));
        Campaign campaign({{"job.sh", "echo begun $RANDOM$RANDOM; sleep 2; echo ended\n"}, {"loss.py", "x\n"}});
        campaign.snapshot();
        const pid_t runner = ::fork();
        if (runner == 0) {
            (void)campaign.run("t1");
            ::_exit(0);
        }
        REQUIRE(runner > 0);
        CHECK(wait_until([&] { return campaign.output("t1").starts_with("begun"); }));
        ::kill(runner, SIGKILL);
        ::waitpid(runner, nullptr, 0);
        const std::string begun = campaign.output("t1");
        CHECK_FALSE(fs::exists(campaign.trial("t1") / "receipt.json"));
        if (has_finished) CHECK(wait_until([&] { return fs::exists(campaign.trial("t1") / "agent.json"); }));

        const Receipt receipt = campaign.receipt("t1");
        CHECK(receipt.execution.exit_code == 0);
        CHECK(campaign.output("t1") == begun + "ended\n");  // the same run, not a second one
        CHECK(receipt.frozen_before.count("loss.py") == 1);
        CHECK(receipt.frozen_touched.empty());
        // And once more: the receipt is there.
        CHECK(campaign.receipt("t1").execution.wall_start_s == receipt.execution.wall_start_s);
        const auto other = campaign.run("t1", patched_job("echo begun", "x"));
        REQUIRE_FALSE(other);
        CHECK(other.error().kind() == ErrorKind::conflict);
    }
}

TEST_CASE("what was prepared by somebody else is not taken over", "[trial]") {
    Campaign campaign({{"job.sh", "echo x\n"}});
    write_tree(campaign.trial("t1"), {{"prepared.json", R"({"prepared": {}, "mac": "00"})"}});
    const auto forged = campaign.run("t1");
    REQUIRE_FALSE(forged);
    CHECK(forged.error().kind() == ErrorKind::corrupt);
    write_tree(campaign.trial("t2"), {{"receipt.json", R"({"receipt": {}, "mac": "00"})"}});
    CHECK(campaign.run("t2").error().kind() == ErrorKind::corrupt);
    // Leftovers without either are only in the way.
    write_tree(campaign.trial("t3"), {{"agent.json", "{}"}, {"tree/x", "y"}});
    CHECK(campaign.receipt("t3").execution.exit_code == 0);
}

TEST_CASE("an agent that dies leaves a receipt with the reason", "[trial]") {
    Campaign campaign({{"job.sh", "echo begun; sleep 60\n"}});
    campaign.snapshot();
    std::jthread killer([&] {
        (void)wait_until([&] { return campaign.output("t1") == "begun\n"; });
        if (const auto agent = recorded_agent(campaign.trial("t1"))) send_signal(*agent, SIGKILL);
    });
    const Receipt receipt = campaign.receipt("t1");
    CHECK(receipt.role == "candidate");
    CHECK(receipt.execution.error.find("agent died") != std::string::npos);
    CHECK_FALSE(receipt.execution.exit_code);
}

TEST_CASE("progress is told while a trial runs", "[trial]") {
    Campaign campaign({{"job.sh", "sleep 1\n"}});
    int calls = 0;
    REQUIRE(campaign.run("t1", {}, {}, [&](const TrialProgress& progress) {
        ++calls;
        CHECK(progress.updates == 0);
        CHECK(progress.elapsed_s >= 0);
    }));
    CHECK(calls >= 2);
}

TEST_CASE("unusual names of folders and trials are no obstacle", "[trial]") {
    Campaign campaign({{"job.sh", "ls; cat 'a b/grün 日本.txt' link\n"},
                       {"a b/grün 日本.txt", "text\n"},
                       {"line\nbreak", "x"},
                       {"loss.py", "x"}},
                      "pro ject's grün");
    fs::create_symlink("a b/grün 日本.txt", campaign.root / "link");
    const Receipt receipt = campaign.receipt("t 1 ü");
    CHECK(receipt.execution.exit_code == 0);
    CHECK(campaign.output("t 1 ü").ends_with("text\ntext\n"));
}

TEST_CASE("the checks of a contract run in the tree of the trial", "[trial]") {
    Campaign campaign({{"job.sh", "echo 1.5 > model.txt\n"}, {"eval.sh", "echo \"loss=$(cat model.txt)\"\n"}});
    campaign.contract.invariants.eval = EvalCheck{"bash eval.sh", "loss", 0.03};
    campaign.contract.invariants.tests = {"test -f model.txt", "echo broken >&2; exit 4", "sleep 60"};
    campaign.setup.silence_s = 2;
    const Receipt receipt = campaign.receipt("t1");
    REQUIRE(receipt.eval);
    CHECK(receipt.eval->value == 1.5);
    CHECK(receipt.eval->exit_code == 0);
    REQUIRE(receipt.tests.size() == 3);
    CHECK(receipt.tests[0].exit_code == 0);
    CHECK(receipt.tests[1].exit_code == 4);
    CHECK(receipt.tests[1].note == "broken");
    CHECK(receipt.tests[2].exit_code != 0);
    CHECK(receipt.tests[2].note.find("silent") != std::string::npos);
    // The record of the job itself is still there.
    CHECK(receipt.execution.exit_code == 0);
    CHECK_FALSE(receipt.resume);

    const Receipt failed = campaign.receipt("t2", patched_job("echo 1.5 > model.txt", "exit 1"));
    CHECK_FALSE(failed.eval);
    CHECK(failed.tests.empty());
}

TEST_CASE("a candidate that cannot be realised leaves no tree", "[trial]") {
    Campaign campaign({{"job.sh", "echo x\n"}, {"loss.py", "x = 1\n"}});
    const Candidate frozen{{}, {{"t", "--- a/loss.py\n+++ b/loss.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n", "user"}}};
    const auto refused = campaign.run("t1", frozen);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind() == ErrorKind::frozen);
    CHECK_FALSE(fs::exists(campaign.trial("t1") / "tree"));
    CHECK_FALSE(fs::exists(campaign.trial("t1") / "prepared.json"));
}

TEST_CASE("a project that cannot be written to is measured all the same", "[trial]") {
    Campaign campaign({{"x", ""}});
    const Mount disk(campaign.home / "readonly", "size=8m");
    if (!disk.is_there()) {
        WARN("skipped: file systems cannot be mounted here");
        return;
    }
    const fs::path root = campaign.home / "readonly";
    write_tree(root, {{"job.sh", "echo fine > out.txt; cat out.txt\n"}, {"loss.py", "x"}});
    disk.make_read_only();
    campaign.contract.root = root;
    campaign.contract.file = root / "infrarsi.yaml";
    CHECK(campaign.receipt("t1").execution.exit_code == 0);
    CHECK(campaign.output("t1") == "fine\n");

    campaign.setup.trials_dir = root / "trials";
    const auto refused = campaign.run("t2");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind() == ErrorKind::io);
    CHECK(refused.error().describe().find("ead-only") != std::string::npos);
}

TEST_CASE("a full disk is an error of resources, and frees what it took", "[trial]") {
    Campaign campaign({{"job.sh", "echo x\n"}, {"big.txt", std::string(600'000, 'x')}});
    const Mount disk(campaign.home / "small", "size=400k");
    if (!disk.is_there()) {
        WARN("skipped: file systems cannot be mounted here");
        return;
    }
    campaign.setup.trials_dir = campaign.home / "small/trials";
    const auto full = campaign.run("t1");
    REQUIRE_FALSE(full);
    CHECK(full.error().kind() == ErrorKind::resource);
    CHECK_FALSE(fs::exists(campaign.setup.trials_dir / "t1/tree"));
    const auto no_snapshot = take_snapshot(campaign.contract, campaign.home / "small/snapshot");
    REQUIRE_FALSE(no_snapshot);
    CHECK(no_snapshot.error().kind() == ErrorKind::resource);
    CHECK_FALSE(fs::exists(campaign.home / "small/snapshot"));
}
