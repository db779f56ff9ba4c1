#pragma once
// The command line as plain values. CLI11 is used in options.cpp only.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/campaign/campaign.h"

namespace infrarsi {

enum class Command {
    none,
    init,
    doctor,
    run,
    report,
    apply,
    optimize,
    finish,
    verify,
    simulate,
    bench,
    bench_search,
    completion
};

struct Options {
    Command command = Command::none;
    bool json = false;  // one JSON object on standard output instead of text
    bool verbose = false;
    std::string
        target;  // script, Python entry, repository, infrarsi.yaml; of report, apply, finish, verify: run or receipt
    std::filesystem::path out;  // runs folder

    // init and optimize
    bool force = false;
    std::string entry, config, job_command;
    std::vector<std::string> requirements;

    // run and optimize
    std::string llm = "none";
    Overrides overrides;
    std::vector<std::string> patch_files;
    std::optional<std::string> resume;
    Interrupts::Policy on_interrupt = Interrupts::Policy::verify;
    bool no_doctor = false;
    bool dry_run = false;
    std::optional<int> reference_runs;
    bool keep_trees = false;
    std::optional<std::string> experience;

    // apply
    bool write = false;
    std::optional<std::string> branch;

    // verify
    bool matrix = false;

    // simulate
    std::uint64_t simulated_seed = 0;
    std::vector<std::string> sets;  // PATH=VALUE
    bool show_truth = false, show_prior = false, show_oracle = false;

    // bench search
    std::vector<std::string> workload_files;
    std::vector<std::string> strategies = {"infrarsi", "random", "tpe", "coordinate", "greedy", "best-of-4"};
    std::uint64_t first_seed = 0, last_seed = 200;  // the last one is not among them
    double budget_units = 24;
    std::optional<int> threads;

    std::string shell;  // completion
};

// What to do: options, or a text and an exit code (--help, --version, a mistake in the line).
struct ParsedLine {
    Options options;
    std::optional<int> exit_code;
    std::string text;  // for standard output when exit_code is 0, else for standard error
};

// `arguments` without the program's name.
[[nodiscard]] ParsedLine parse_command_line(std::vector<std::string> arguments);

// "0:200": from the first to before the last; at least one. "7" is "7:8".
[[nodiscard]] Expected<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text);

// "90m", "2h", "3600s", plain hours. Seconds.
[[nodiscard]] Expected<double> parse_duration(const std::string& text);

}  // namespace infrarsi
