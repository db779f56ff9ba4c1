#include "core/exec/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>

#include "core/base/files.h"
#include "core/base/owned_fd.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

// Both parts of posix_spawn's set-up, destroyed together.
struct SpawnPlan {
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
    SpawnPlan() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;
    ~SpawnPlan() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
};

bool is_program(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<ProcessStat> read_process_stat(int pid) {
    const auto text = read_file(fmt::format("/proc/{}/stat", pid), 1u << 16);
    if (!text) return std::nullopt;
    // The name in field 2 may hold spaces and brackets; the last ')' ends it.
    const auto end = text->rfind(')');
    if (end == std::string::npos) return std::nullopt;
    std::istringstream rest(text->substr(end + 1));
    ProcessStat stat;
    rest >> stat.state;
    std::string skipped;
    for (int field = 4; field < 22; ++field) rest >> skipped;
    rest >> stat.start_ticks;
    if (!rest) return std::nullopt;
    return stat;
}

bool is_running(const ProcessId& process) {
    if (process.pid <= 0) return false;
    const auto stat = read_process_stat(process.pid);
    return stat && stat->start_ticks == process.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

ProcessId this_process() {
    const int pid = ::getpid();
    const auto stat = read_process_stat(pid);
    return {pid, stat ? stat->start_ticks : 0};
}

void send_signal(const ProcessId& process, int signal_number) {
    if (process.pid <= 0) return;
    // The descriptor is opened before the identity is checked, so that the pid cannot change hands in between.
    const OwnedFd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    if (!is_running(process)) return;
    if (handle.is_open()) {
        ::syscall(SYS_pidfd_send_signal, handle.get(), signal_number, nullptr, 0);
    } else if (errno == ENOSYS || errno == EPERM) {
        ::kill(process.pid, signal_number);
    }
}

std::optional<fs::path> find_program(const std::string& name, const std::map<std::string, std::string>& env) {
    if (name.find('/') != std::string::npos) return is_program(name) ? std::optional<fs::path>(name) : std::nullopt;
    const auto path = env.find("PATH");
    std::istringstream folders(path == env.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second);
    for (std::string folder; std::getline(folders, folder, ':');) {
        const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
        if (is_program(candidate)) return candidate;
    }
    return std::nullopt;
}

Expected<int> spawn(const SpawnRequest& request) {
    INFRARSI_CHECK(!request.argv.empty(), "a command has at least its program");
    std::error_code ignored;
    if (!fs::is_directory(request.cwd, ignored)) {
        return fail(ErrorKind::not_found, "cannot start {} in {}: there is no such folder", request.argv[0],
                    request.cwd.string());
    }
    const std::string& name = request.argv[0];
    std::optional<fs::path> program = find_program(name, request.env);
    if (!program && name.find('/') != std::string::npos && is_program(request.cwd / name)) program = name;
    if (!program) {
        return fail(ErrorKind::not_found, "cannot start {}: no such program{}; install it or correct the name", name,
                    name.find('/') == std::string::npos ? " in PATH" : "");
    }

    SpawnPlan plan;
    posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&plan.actions, request.out_fd, 1);
    posix_spawn_file_actions_adddup2(&plan.actions, request.err_fd, 2);
    posix_spawn_file_actions_addclosefrom_np(&plan.actions, 3);
    posix_spawn_file_actions_addchdir_np(&plan.actions, request.cwd.c_str());
    sigset_t none{}, all{};
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&plan.attributes, &none);
    posix_spawnattr_setsigdefault(&plan.attributes, &all);
    posix_spawnattr_setpgroup(&plan.attributes, 0);
    const int grouping = request.grouping == Grouping::own_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&plan.attributes,
                             static_cast<short>(grouping | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

    std::vector<std::string> pairs;
    for (const auto& [key, value] : request.env) pairs.push_back(key + "=" + value);
    std::vector<char*> envp, argv;
    for (std::string& pair : pairs) envp.push_back(pair.data());
    envp.push_back(nullptr);
    for (const std::string& word : request.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);

    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, program->c_str(), &plan.actions, &plan.attributes, argv.data(), envp.data());
    if (error != 0) {
        return fail(error == ENOENT ? ErrorKind::not_found : ErrorKind::io, "cannot start {}: {}", name,
                    errno_text(error));
    }
    return pid;
}

}  // namespace infrarsi
