#pragma once
// The little that is known of a process from outside, and the one way in which this program starts others: posix_spawn
// with closed descriptors and default signals (notes/build.md §3). Nothing here waits.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/target.h"

namespace infrarsi {

struct ProcessStat {
    char state = '?';              // as in /proc: R, S, D, Z, …
    std::int64_t start_ticks = 0;  // field 22: with the pid, the identity of a process
};

// Nothing when there is no such process.
[[nodiscard]] std::optional<ProcessStat> read_process_stat(int pid);

// The same process still runs: pid and start time match and it is no zombie.
[[nodiscard]] bool is_running(const ProcessId& process);

[[nodiscard]] ProcessId this_process();

// Sends to exactly this process; a reused pid is never hit. Nothing happens when it is gone.
void send_signal(const ProcessId& process, int signal_number);

enum class Grouping { own_group, own_session };

struct SpawnRequest {
    const std::vector<std::string>& argv;  // argv[0] is looked for in the PATH of `env`, not of this process
    const std::map<std::string, std::string>& env;
    const std::filesystem::path& cwd;
    int out_fd = -1, err_fd = -1;  // standard input is /dev/null
    Grouping grouping = Grouping::own_group;
};

// The pid; the caller reaps. not_found when the program or the folder is missing, io else.
[[nodiscard]] Expected<int> spawn(const SpawnRequest& request);

// The program that a shell with this PATH would run; nothing when there is none.
[[nodiscard]] std::optional<std::filesystem::path> find_program(const std::string& name,
                                                                const std::map<std::string, std::string>& env);

}  // namespace infrarsi
