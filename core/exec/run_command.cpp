#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/base/owned_fd.h"
#include "core/exec/process.h"
#include "core/exec/target.h"

namespace infrarsi {

namespace {

using std::chrono::milliseconds;
// A limit on a real process can only be held by the real clock; nothing is decided by it that a replay would repeat.
using RealClock = std::chrono::steady_clock;

constexpr std::size_t kOutputLimit = 64u << 20;  // bytes of each stream
constexpr milliseconds kDrain{200};              // for what is left in the pipes after the program's end
constexpr milliseconds kTurn{20};                // where there is no pidfd to wait for

struct Pipe {
    OwnedFd read, write;
};

Expected<Pipe> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorKind::io, "cannot make a pipe: {}", errno_text(errno));
    Pipe pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
    ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    return pipe;
}

// Reads what is there; closes at the end of the stream.
void take(OwnedFd& fd, std::string& text) {
    char buffer[1 << 16];
    for (;;) {
        const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
        if (count > 0) {
            text.append(buffer, static_cast<std::size_t>(count));
            if (text.size() > kOutputLimit) return;
            continue;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count == 0 || errno != EAGAIN) fd.reset();
        return;
    }
}

// A child that is reaped whatever happens, its group killed with it.
class Child {
public:
    explicit Child(int pid) : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() { finish(); }

    [[nodiscard]] int handle() const { return handle_.get(); }
    [[nodiscard]] bool has_ended() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
    }
    // Kills the group while the leader's pid is still ours (not reaped), then reaps it.
    int finish() {
        if (pid_ <= 0) return status_;
        ::kill(-pid_, SIGKILL);
        while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
        }
        pid_ = 0;
        return status_;
    }

private:
    int pid_;
    OwnedFd handle_;
    int status_ = 0;
};

}  // namespace

Expected<CommandResult> run_command(const std::vector<std::string>& argv, const std::map<std::string, std::string>& env,
                                    const std::filesystem::path& cwd, milliseconds limit) {
    INFRARSI_ASSIGN(Pipe out, make_pipe());
    INFRARSI_ASSIGN(Pipe err, make_pipe());
    INFRARSI_ASSIGN(const int pid, spawn({argv, env, cwd, out.write.get(), err.write.get()}));
    Child child(pid);
    out.write.reset();
    err.write.reset();

    CommandResult result;
    auto deadline = RealClock::now() + limit;
    bool ended = false;
    while (!ended || out.read.is_open() || err.read.is_open()) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - RealClock::now());
        if (left.count() <= 0) {
            // After its end only a background process holds the pipes; the program's own output is complete.
            if (ended) break;
            return fail(ErrorKind::timeout, "{} did not end within {} s and was killed", argv[0],
                        static_cast<double>(limit.count()) / 1000.0);
        }
        pollfd watched[3] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {child.handle(), POLLIN, 0}};
        if (ended) watched[2].fd = -1;
        const bool is_blind = !ended && child.handle() < 0;
        ::poll(watched, 3, static_cast<int>(std::min(left, is_blind ? kTurn : left).count()));
        if (out.read.is_open()) take(out.read, result.out);
        if (err.read.is_open()) take(err.read, result.err);
        if (result.out.size() > kOutputLimit || result.err.size() > kOutputLimit) {
            return fail(ErrorKind::resource, "{} wrote more than {} MiB and was killed", argv[0], kOutputLimit >> 20);
        }
        if (!ended && child.has_ended()) {
            ended = true;
            deadline = RealClock::now() + kDrain;
        }
    }
    const int status = child.finish();
    result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

}  // namespace infrarsi
