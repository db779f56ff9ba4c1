#pragma once
// A place to run trials (DESIGN §2). Local now; SSH and Slurm later behind the same interface.

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace infrarsi {

struct ProcessId {
    int pid = 0;
    std::int64_t start_ticks = 0;  // field 22 of /proc/PID/stat: a pid alone can be reused
};

class ExecTarget {
public:
    virtual ~ExecTarget() = default;
    // Starts `argv` detached from the caller's life (its own session, closed descriptors, output to `log`).
    [[nodiscard]] virtual Expected<ProcessId> start(const std::vector<std::string>& argv,
                                                    const std::map<std::string, std::string>& env,
                                                    const std::filesystem::path& cwd,
                                                    const std::filesystem::path& log) = 0;
    [[nodiscard]] virtual bool alive(const ProcessId& process) const = 0;  // a zombie is not alive
    virtual void signal(const ProcessId& process, int signal_number) = 0;
    [[nodiscard]] virtual std::map<std::string, std::string> fingerprint()
        const = 0;  // hardware and software of the place
};

[[nodiscard]] std::unique_ptr<ExecTarget> make_local_target();

// Runs a short helper to its end and returns its output; for git, bwrap probes, tests. timeout, io.
struct CommandResult {
    int exit_code = 0;  // 128 + signal when killed
    std::string out, err;
};
[[nodiscard]] Expected<CommandResult> run_command(const std::vector<std::string>& argv,
                                                  const std::map<std::string, std::string>& env,
                                                  const std::filesystem::path& cwd, std::chrono::milliseconds limit);

}  // namespace infrarsi
