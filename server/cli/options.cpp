#include "server/cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace infrarsi {

namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 checked and found wanting; 2 wrong input; 3 not found; 4 conflict; 5 frozen; 6 "
    "unsupported;\n"
    "7 time limit; 8 memory, disk or budget; 9 input/output; 10 does not verify; 70 our mistake; 130 stopped.\n"
    "Documentation: README.md. The contract's keys: `infrarsi init` writes them with comments.";

void add_common(CLI::App* app, Options& options) {
    app->add_flag("--json", options.json, "Print one JSON object instead of text");
    app->add_flag("-v,--verbose", options.verbose, "Print every progress line, not only milestones");
}

void add_out(CLI::App* app, Options& options) {
    app->add_option("--out", options.out, "Runs folder (default: .infrarsi/runs beside infrarsi.yaml)");
}

void add_draft(CLI::App* app, Options& options) {
    app->add_flag("--force", options.force,
                  "Draft infrarsi.yaml again even if there is one (the old one becomes .bak)");
    app->add_option("--entry", options.entry, "The training entry script, relative to the repository");
    app->add_option("--config", options.config, "The job's config file; its values become the reference");
    app->add_option("--command", options.job_command, "The command line that the job runs with today");
    app->add_option("--requirements", options.requirements,
                    "A requirement in your own words, kept in infrarsi.yaml; repeatable")
        ->allow_extra_args(false);
}

// Durations and shares are read as text, so that a mistake is told in our words.
void add_duration(CLI::App* app, const std::string& names, std::optional<double>& value, const std::string& help) {
    app->add_option_function<std::string>(
           names,
           [&value, names](const std::string& text) {
               const auto seconds = parse_duration(text);
               if (!seconds) throw CLI::ValidationError(names, seconds.error().message());
               value = *seconds;
           },
           help)
        ->type_name("DURATION");
}

void add_mfu(CLI::App* app, std::optional<double>& value) {
    app->add_option_function<double>(
        "--target-mfu",
        [&value](double share) {
            if (share > 1) share /= 100;  // 45 is 45 %
            if (!(share > 0 && share <= 1))
                throw CLI::ValidationError("--target-mfu", "give a share such as 0.45 or 45");
            value = share;
        },
        "Stop at this Model FLOPs Utilization, as a fraction or a percentage number");
}

void add_search(CLI::App* app, Options& options) {
    Overrides& overrides = options.overrides;
    // CLI11 lets NaN through every range, and wraps a seed that is negative or too large.
    const CLI::Validator finite(
        [](const std::string& text) {
            return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : text + " is no number";
        },
        "");
    const CLI::Validator seed(
        [](const std::string& text) {
            std::uint64_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            return error == std::errc{} && end == text.data() + text.size() ? ""
                                                                            : text + " is no whole number of 64 bits";
        },
        "");
    app->add_option("--llm", options.llm, "Language model backend; this version searches without one")
        ->check(CLI::IsMember({"none"}));
    app->add_option("--screens,--trials", overrides.screens, "Search budget in full training runs (default 16)")
        ->check(CLI::Range(0, 100000));
    add_duration(app, "--max-wallclock,--wall-hours", overrides.wallclock_s,
                 "Wall-clock budget: 90m, 2h, 3600s, or hours");
    app->add_option("--target-speedup", overrides.target_speedup, "Stop after a valid full run reaches this speed-up")
        ->check(CLI::Range(1.0000001, 1000.0))
        ->check(finite);
    add_mfu(app, overrides.target_mfu);
    app->add_option("--tolerance", overrides.tolerance, "Accepted relative loss deviation (default 0.03)")
        ->check(CLI::Range(1e-6, 1.0))
        ->check(finite);
    app->add_option("--seed", overrides.seed, "Seed of the search")->check(seed);
    app->add_option("--patch", options.patch_files, "A unified diff to try as a candidate; repeatable")
        ->allow_extra_args(false);
    app->add_option("--reference-runs", options.reference_runs,
                    "Runs of the unchanged job that calibrate the noise (default 3)")
        ->check(CLI::Range(1, 50));
    app->add_option_function<std::string>(
           "--on-interrupt",
           [&options](const std::string& policy) {
               options.on_interrupt = policy == "stop" ? Interrupts::Policy::stop : Interrupts::Policy::verify;
           },
           "What Ctrl-C does: verify (default) re-verifies the best so far; stop ends at once")
        ->check(CLI::IsMember({"verify", "stop"}));
    app->add_flag("--keep-trees", options.keep_trees, "Keep the files of every trial");
    app->add_option("--experience", options.experience, "Experience packs to use: auto, off, or pack-id patterns");
}

struct Built {
    CLI::App app{
        "infrarsi makes an LLM-training job faster and proves that it is still the same job.\n\n"
        "  infrarsi optimize ./train.sh      all five stages: init, doctor, run, report, apply\n"
        "  infrarsi ./train.sh               the same, shorter",
        "infrarsi"};
    std::vector<std::pair<CLI::App*, Command>> commands;
};

CLI::App* add_command(Built& built, Command command, const std::string& name, const std::string& help) {
    CLI::App* app = built.app.add_subcommand(name, help);
    built.commands.emplace_back(app, command);
    return app;
}

// One command for each of the five stages.
void add_stages(Built& built, Options& options) {
    CLI::App* init = add_command(built, Command::init, "init", "Draft infrarsi.yaml and infrarsi.lock; runs nothing");
    init->add_option("target", options.target, "Launch script, Python entry, or repository (default: this folder)");
    add_draft(init, options);
    add_common(init, options);

    CLI::App* doctor =
        add_command(built, Command::doctor, "doctor", "Run the unchanged job; noise, phases, what can be checked");
    doctor->add_option("target", options.target, "infrarsi.yaml or its folder (default: this folder)");
    doctor->add_option("--reference-runs", options.reference_runs, "Runs of the unchanged job (default 3)")
        ->check(CLI::Range(1, 50));
    doctor->add_option("--experience", options.experience, "Experience packs to grade: auto, off, or pack-id patterns");
    add_out(doctor, options);
    add_common(doctor, options);

    CLI::App* run = add_command(built, Command::run, "run", "Search, verify the best back to back, and report");
    run->add_option("target", options.target, "infrarsi.yaml or its folder (default: this folder)");
    add_search(run, options);
    run->add_option("--resume", options.resume, "Continue this run; what it used counts toward the budget");
    add_out(run, options);
    add_common(run, options);

    CLI::App* report = add_command(built, Command::report, "report", "Print the report of a run (default: the newest)");
    report->add_option("run", options.target, "A run's folder");
    add_out(report, options);
    add_common(report, options);

    CLI::App* apply = add_command(built, Command::apply, "apply", "Show the recommended change; --write writes it");
    apply->add_option("run", options.target, "A run's folder (default: the newest)");
    apply->add_flag("--write", options.write, "Write the change to your files");
    apply->add_option("--branch", options.branch, "Commit the change on this new git branch instead")
        ->excludes("--write");
    add_out(apply, options);
    add_common(apply, options);
}

void add_simulate(Built& built, Options& options) {
    CLI::App* simulate = add_command(built, Command::simulate, "simulate",
                                     "Answer candidates of a simulated job: one JSON request a line on standard input");
    simulate->add_option("file", options.target, "The workload, such as seeds/workloads/w1-dense-9b-8xh100.yaml")
        ->required();
    simulate->add_option("--seed", options.simulated_seed, "Seed of all luck (default 0)")
        ->check(
            [](const std::string& text) { return std::string(text.starts_with('-') ? "must not be negative" : ""); });
    simulate->add_option("--set", options.sets, "Override a key of the file, such as noise.sigma_pair=0.06; repeatable")
        ->allow_extra_args(false);
    simulate->add_flag("--truth", options.show_truth, "Add what is true of each candidate; for scoring only");
    CLI::Option* prior = simulate->add_flag(
        "--prior", options.show_prior, "Print what may be chosen and what a simulated agent believes of it, and end");
    simulate
        ->add_flag("--oracle", options.show_oracle,
                   "Print the best candidates that can be delivered, and end; for scoring only")
        ->excludes(prior);
}

void add_bench(Built& built, Options& options) {
    CLI::App* bench = add_command(built, Command::bench, "bench", "Compare ways of searching on simulated jobs");
    bench->require_subcommand(1);
    CLI::App* search = bench->add_subcommand("search", "Every strategy on every workload with every seed");
    built.commands.emplace_back(search, Command::bench_search);
    search->add_option("files", options.workload_files, "Workloads, such as seeds/workloads/w1-dense-9b-8xh100.yaml")
        ->required();
    search
        ->add_option("--strategies", options.strategies,
                     "Names with commas between; differences are to the first (default: infrarsi, random, tpe, "
                     "coordinate, greedy, best-of-4; also infrarsi-full, and each baseline with -unverified)")
        ->delimiter(',')
        ->allow_extra_args(false);
    search->add_option_function<std::string>(
        "--seeds",
        [&options](const std::string& text) {
            const auto seeds = parse_seeds(text);
            if (!seeds) throw CLI::ValidationError("--seeds", seeds.error().message());
            std::tie(options.first_seed, options.last_seed) = *seeds;
        },
        "FIRST:LAST, the last one left out (default 0:200)");
    search
        ->add_option("--budget", options.budget_units, "Cost units of a campaign; a reference run is one (default 24)")
        ->check(CLI::Range(0.0, 1e6));
    search->add_option("--threads", options.threads, "Campaigns at once (default: one a core); changes no score")
        ->check(CLI::Range(1, 1024));
    search->add_option("--set", options.sets, "Override a key of every file, such as noise.sigma_pair=0.06; repeatable")
        ->allow_extra_args(false);
    search->add_flag("--json", options.json, "Print a line a campaign and a line with the summary instead of a table");
}

// All stages at once, and what looks back at a run.
void add_rest(Built& built, Options& options) {
    CLI::App* optimize = add_command(built, Command::optimize, "optimize", "All five stages in one command");
    optimize->add_option("target", options.target, "Launch script, Python entry, repository, or infrarsi.yaml");
    add_draft(optimize, options);
    add_search(optimize, options);
    optimize->add_flag("--no-doctor", options.no_doctor, "One reference run instead of three");
    optimize->add_flag("--dry-run", options.dry_run, "Print the plan; runs nothing");
    optimize->add_option("--branch", options.branch, "Commit the change on this new git branch");
    add_out(optimize, options);
    add_common(optimize, options);

    CLI::App* finish =
        add_command(built, Command::finish, "finish", "Re-verify the best of a run that ended early, and adopt it");
    finish->add_option("run", options.target, "A run's folder (default: the newest)");
    finish->add_flag("--dry-run", options.dry_run, "Say what would be re-verified; runs nothing");
    finish->add_option("--branch", options.branch, "Commit the change on this new git branch");
    add_out(finish, options);
    add_common(finish, options);

    CLI::App* verify =
        add_command(built, Command::verify, "verify", "Judge a run's or one receipt's evidence again, offline");
    verify->add_option("subject", options.target, "A run's folder or a receipt.json (default: the newest run)");
    verify->add_flag("--matrix", options.matrix,
                     "Perturb real receipts: every breach must be rejected, every benign change accepted");
    add_out(verify, options);
    add_common(verify, options);

    add_simulate(built, options);
    add_bench(built, options);

    CLI::App* completion =
        add_command(built, Command::completion, "completion", "Print a completion script for a shell");
    completion->add_option("shell", options.shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

// The command that was named last: of `bench search`, search.
const CLI::App& innermost(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    return chosen.empty() ? app : innermost(*chosen.front());
}

// `infrarsi bench search`.
std::string path_of(const CLI::App& app) {
    return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

void build(Built& built, Options& options) {
    built.app.footer(kFooter);
    built.app.set_version_flag("--version", std::string("infrarsi ") + INFRARSI_VERSION);
    built.app.require_subcommand(0, 1);
    add_stages(built, options);
    add_rest(built, options);
}

}  // namespace

Expected<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text) {
    const std::size_t colon = text.find(':');
    const auto read = [](std::string_view digits) -> std::optional<std::uint64_t> {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        const bool is_whole = error == std::errc() && end == digits.data() + digits.size() && number < 1'000'000'000;
        return is_whole ? std::optional(number) : std::nullopt;
    };
    const auto first = read(std::string_view(text).substr(0, colon));
    auto last = colon == std::string::npos ? first : read(std::string_view(text).substr(colon + 1));
    if (colon == std::string::npos && last) ++*last;
    if (!first || !last || *first >= *last) {
        return fail(ErrorKind::invalid_input, "{} names no seeds: write FIRST:LAST, the last one left out", text);
    }
    return std::pair(*first, *last);
}

Expected<double> parse_duration(const std::string& text) {
    std::size_t used = 0;
    double number = 0;
    try {
        number = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    const std::string unit = text.substr(std::min(used, text.size()));
    const double scale = unit.empty() || unit == "h" ? 3600 : unit == "m" ? 60 : unit == "s" ? 1 : 0;
    if (used == 0 || scale == 0 || !(number > 0) || !std::isfinite(number)) {
        return fail(ErrorKind::invalid_input, "{} is no duration: write 90m, 2h, 3600s, or a number of hours", text);
    }
    return number * scale;
}

ParsedLine parse_command_line(std::vector<std::string> arguments) {
    ParsedLine parsed;
    Built built;
    build(built, parsed.options);
    // `infrarsi ./train.sh …` is `infrarsi optimize ./train.sh …`.
    if (!arguments.empty() && !arguments.front().starts_with("-")) {
        const bool known = std::any_of(built.commands.begin(), built.commands.end(), [&](const auto& command) {
            return command.first->get_name() == arguments.front();
        });
        const bool is_path =
            arguments.front().find_first_of("/.") != std::string::npos || std::filesystem::exists(arguments.front());
        if (!known && is_path) arguments.insert(arguments.begin(), "optimize");
    }
    std::reverse(arguments.begin(), arguments.end());
    try {
        built.app.parse(arguments);
    } catch (const CLI::CallForVersion&) {
        parsed.exit_code = 0;
        parsed.text = std::string("infrarsi ") + INFRARSI_VERSION + "\n";
        return parsed;
    } catch (const CLI::CallForHelp&) {
        parsed.exit_code = 0;
        parsed.text = innermost(built.app).help();
        return parsed;
    } catch (const CLI::ParseError& error) {
        parsed.exit_code = 2;
        parsed.text = fmt::format("infrarsi: {}\nTry `{} --help`.\n", error.what(), path_of(innermost(built.app)));
        return parsed;
    }
    for (const auto& [app, command] : built.commands) {
        if (app->parsed()) parsed.options.command = command;
    }
    if (parsed.options.command == Command::none) {
        parsed.exit_code = 0;
        parsed.text = built.app.help();
    }
    return parsed;
}

}  // namespace infrarsi
