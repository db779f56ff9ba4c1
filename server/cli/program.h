#pragma once
// What every command gets from main: the clock, the place where trials run, the environment, and where things lie.

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/campaign/interrupts.h"
#include "core/exec/target.h"
#include "server/cli/options.h"

namespace infrarsi {

struct Program {
    Clock* clock = nullptr;
    ExecTarget* target = nullptr;
    Interrupts* interrupts = nullptr;
    std::map<std::string, std::string> env;
    std::filesystem::path working_dir;
    std::filesystem::path config_dir;  // holds the signing key
    std::filesystem::path data_dir;    // holds adapters/ and seeds/
    bool stderr_is_terminal = false;
};

// Each runs one command and returns the exit code; an Error is printed by main.
[[nodiscard]] Expected<int> run_init(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_doctor(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_search(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_optimize(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_finish(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_report(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_apply(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_verify(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_simulate(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_bench_search(const Program& program, const Options& options);
[[nodiscard]] Expected<int> run_completion(const Program& program, const Options& options);

// infrarsi.yaml for `target`: the file, its folder, or (when empty) the working folder or the nearest one above that
// has it. not_found says to run init.
[[nodiscard]] Expected<std::filesystem::path> find_contract(const Program& program, const std::string& target);

// A run's folder: as given, or the newest under --out or beside the contract.
[[nodiscard]] Expected<std::filesystem::path> find_run(const Program& program, const Options& options);

// Environment as a map; main passes the process's.
[[nodiscard]] std::map<std::string, std::string> environment_map(char** env);

}  // namespace infrarsi
