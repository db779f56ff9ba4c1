#include "core/exec/target.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/files.h"
#include "core/exec/process.h"
#include "core/testing/temp_dir.h"

using namespace infrarsi;
using namespace std::chrono_literals;

namespace {

const std::map<std::string, std::string> kEnv{{"PATH", "/usr/bin:/bin"}, {"MARK", "a b\nc"}};

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 10s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
        if (condition()) return true;
        std::this_thread::sleep_for(5ms);
    }
    return condition();
}

}  // namespace

TEST_CASE("a command gives its output, its errors and its exit code", "[exec]") {
    const TempDir folder;
    const auto result = run_command({"sh", "-c", "pwd; echo \"$MARK\" >&2; cat; exit 7"}, kEnv, folder.path(),
                                    std::chrono::seconds(20));
    REQUIRE(result);
    CHECK(result->out == folder.path().string() + "\n");
    CHECK(result->err == "a b\nc\n");
    CHECK(result->exit_code == 7);
    CHECK(run_command({"sh", "-c", "kill -9 $$"}, kEnv, "/", 20s)->exit_code == 137);
}

TEST_CASE("a command sees only the environment and descriptors that it is given", "[exec]") {
    const auto result = run_command({"/usr/bin/env"}, {{"ONLY", "this"}}, "/", 20s);
    REQUIRE(result);
    CHECK(result->out == "ONLY=this\n");
    const int leaked = ::dup(0);  // without close-on-exec
    const auto listed = run_command({"ls", "/proc/self/fd"}, kEnv, "/", 20s);
    ::close(leaked);
    REQUIRE(listed);
    CHECK(listed->out == "0\n1\n2\n3\n");  // 3 is the listing itself
}

TEST_CASE("large output on both streams does not block", "[exec]") {
    const auto result = run_command(
        {"sh", "-c", "head -c 5000000 /dev/zero >&2; head -c 7000000 /dev/zero; head -c 1000000 /dev/zero >&2"}, kEnv,
        "/", 60s);
    REQUIRE(result);
    CHECK(result->out.size() == 7'000'000);
    CHECK(result->err.size() == 6'000'000);
    const auto endless = run_command({"cat", "/dev/zero"}, kEnv, "/", 60s);
    REQUIRE_FALSE(endless);
    CHECK(endless.error().kind() == ErrorKind::resource);
}

TEST_CASE("a command over its limit is killed with all its group", "[exec]") {
    const TempDir folder;
    const auto start = std::chrono::steady_clock::now();
    const auto result = run_command({"sh", "-c", "sleep 60 & echo $! > pid; wait"}, kEnv, folder.path(),
                                    std::chrono::milliseconds(500));
    REQUIRE_FALSE(result);
    CHECK(result.error().kind() == ErrorKind::timeout);
    CHECK(std::chrono::steady_clock::now() - start < 10s);
    const int grandchild = std::stoi(folder.read("pid"));
    CHECK(wait_until([&] {
        const auto stat = read_process_stat(grandchild);
        return !stat || stat->state == 'Z';
    }));
}

TEST_CASE("a background process that keeps the pipes open does not hold the caller", "[exec]") {
    const auto start = std::chrono::steady_clock::now();
    const auto result = run_command({"sh", "-c", "sleep 60 & echo done"}, kEnv, "/", 50s);
    REQUIRE(result);
    CHECK(result->out == "done\n");
    CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("what cannot be started says why", "[exec]") {
    const auto missing = run_command({"no-such-program-here"}, kEnv, "/", 5s);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().kind() == ErrorKind::not_found);
    CHECK(missing.error().message().find("no-such-program-here") != std::string::npos);
    const auto nowhere = run_command({"true"}, kEnv, "/no/such/folder", 5s);
    REQUIRE_FALSE(nowhere);
    CHECK(nowhere.error().message().find("/no/such/folder") != std::string::npos);
    // The PATH of the command's own environment counts.
    CHECK_FALSE(run_command({"true"}, {{"PATH", "/nowhere"}}, "/", 5s));
}

TEST_CASE("a started process has its own session and logs to its file", "[exec]") {
    const TempDir folder;
    const auto target = make_local_target();
    const auto process = target->start({"sh", "-c", "echo out; echo err >&2; ps -o sid= -p $$; sleep 60"}, kEnv,
                                       folder.path(), folder / "log ü");
    REQUIRE(process);
    CHECK(process->start_ticks > 0);
    CHECK(target->alive(*process));
    CHECK(::getsid(process->pid) == process->pid);
    CHECK(wait_until([&] { return folder.read("log ü").starts_with("out\nerr\n"); }));

    ProcessId reused = *process;
    reused.start_ticks += 1;
    CHECK_FALSE(target->alive(reused));
    target->signal(reused, SIGKILL);
    CHECK(target->alive(*process));

    target->signal(*process, SIGKILL);
    CHECK(wait_until([&] { return !target->alive(*process); }));
    CHECK(wait_until([&] { return !read_process_stat(process->pid); }));  // reaped
    target->signal(*process, SIGKILL);                                    // gone: nothing happens
    CHECK_FALSE(target->alive(ProcessId{}));
}

TEST_CASE("a zombie is not alive", "[exec]") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    REQUIRE(child > 0);
    CHECK(wait_until([&] { return read_process_stat(child)->state == 'Z'; }));
    const ProcessId process{child, read_process_stat(child)->start_ticks};
    CHECK_FALSE(is_running(process));
    ::waitpid(child, nullptr, 0);
    CHECK(is_running(this_process()));
}

TEST_CASE("a place has a fingerprint that stays the same", "[exec]") {
    const auto target = make_local_target();
    const auto found = target->fingerprint();
    for (const char* key : {"cpu", "cores", "memory_gib", "kernel", "host"}) {
        INFO(key);
        CHECK(found.count(key) == 1);
    }
    CHECK(found.at("host").size() == 16);
    CHECK(std::stoi(found.at("cores")) >= 1);
    CHECK(std::stod(found.at("memory_gib")) > 0.1);
    CHECK(found == target->fingerprint());
}
