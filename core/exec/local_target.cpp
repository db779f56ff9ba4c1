#include <fcntl.h>
#include <sched.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/owned_fd.h"
#include "core/exec/process.h"
#include "core/exec/target.h"

namespace infrarsi {

namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// The value of the first line `name : value` of a /proc text.
std::string proc_field(const fs::path& file, std::string_view name) {
    const auto text = read_file(file);
    if (!text) return {};
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        const auto colon = line.find(':');
        if (colon != std::string::npos && trimmed(line.substr(0, colon)) == name)
            return trimmed(line.substr(colon + 1));
    }
    return {};
}

std::string usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::to_string(CPU_COUNT(&set));
    return std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::string host_digest(const utsname& system) {
    const auto machine = read_file("/etc/machine-id");
    return sha256_hex(std::string(system.nodename) + "\n" + (machine ? trimmed(*machine) : "")).substr(0, 16);
}

class LocalTarget final : public ExecTarget {
public:
    Expected<ProcessId> start(const std::vector<std::string>& argv, const std::map<std::string, std::string>& env,
                              const fs::path& cwd, const fs::path& log) override {
        const OwnedFd file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
        if (!file.is_open()) {
            const int error = errno;
            return fail(error == ENOSPC || error == EDQUOT ? ErrorKind::resource : ErrorKind::io,
                        "cannot open the log {}: {}", log.string(), errno_text(error));
        }
        INFRARSI_ASSIGN(const int pid, spawn({argv, env, cwd, file.get(), file.get(), Grouping::own_session}));
        // Not reaped yet, so its entry is there even if it ended at once.
        const auto stat = read_process_stat(pid);
        return ProcessId{pid, stat ? stat->start_ticks : 0};
    }

    bool alive(const ProcessId& process) const override {
        if (is_running(process)) return true;
        // A child of ours that ended stays a zombie until it is reaped; with another's child this does nothing.
        const auto stat = process.pid > 0 ? read_process_stat(process.pid) : std::nullopt;
        if (stat && stat->start_ticks == process.start_ticks) ::waitpid(process.pid, nullptr, WNOHANG);
        return false;
    }

    void signal(const ProcessId& process, int signal_number) override { send_signal(process, signal_number); }

    std::map<std::string, std::string> fingerprint() const override {
        std::map<std::string, std::string> found;
        found["cpu"] = proc_field("/proc/cpuinfo", "model name");
        found["cores"] = usable_cores();
        if (const std::string total = proc_field("/proc/meminfo", "MemTotal"); !total.empty()) {
            found["memory_gib"] = fmt::format("{:.1f}", std::strtod(total.c_str(), nullptr) / (1 << 20));
        }
        utsname system{};
        if (::uname(&system) == 0) {
            found["kernel"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
            found["host"] = host_digest(system);
        }
        add_gpus(found);
        return found;
    }

private:
    static void add_gpus(std::map<std::string, std::string>& found) {
        const std::map<std::string, std::string> env{
            {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin"}};
        const std::string program = "nvidia-smi";
        if (!find_program(program, env)) return;
        const auto listed =
            run_command({program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"}, env, "/",
                        std::chrono::seconds(10));
        if (!listed || listed->exit_code != 0) return;
        std::istringstream lines(listed->out);
        std::vector<std::string> gpus;
        for (std::string line; std::getline(lines, line);) {
            const auto driver = line.rfind(", ");
            if (driver == std::string::npos) continue;
            gpus.push_back(line.substr(0, driver));
            found["gpu_driver"] = trimmed(line.substr(driver + 2));
        }
        found["gpu_count"] = std::to_string(gpus.size());
        found["gpu"] = fmt::format("{}", fmt::join(gpus, "; "));
    }
};

}  // namespace

std::unique_ptr<ExecTarget> make_local_target() {
    return std::make_unique<LocalTarget>();
}

}  // namespace infrarsi
