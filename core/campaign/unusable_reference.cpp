#include "core/campaign/unusable_reference.h"

#include "core/base/files.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string last_line(const fs::path& log) {
    const auto text = read_file(log);
    if (!text) return {};
    const std::string words = trimmed(*text);
    return words.substr(words.rfind('\n') + 1);
}

// What the job itself said. A traceback quotes source lines, indented, before it names the error.
std::string last_words(const Receipt& receipt, const fs::path& folder) {
    for (const auto& failure : receipt.failures) {
        if (failure.stream == "harness" || failure.text.empty()) continue;
        if (failure.text.front() != ' ' && !failure.text.starts_with("Traceback")) return trimmed(failure.text);
    }
    return trimmed(last_line(folder / "stderr.log"));
}

std::string of_exit(const Receipt& receipt, const fs::path& folder) {
    const Execution& execution = receipt.execution;
    const std::string words = last_words(receipt, folder);
    // A process cannot raise a hard limit, and the memory cap is one.
    if (words.find("ulimit:") != std::string::npos && words.find("cannot modify limit") != std::string::npos &&
        receipt.memory.cap_gib) {
        return fmt::format(
            "the unchanged job sets itself a memory limit above the cap of {:.3f} GiB under which it runs here ({}): "
            "raise invariants.memory_cap_gib to that limit, or drop the line",
            *receipt.memory.cap_gib, words);
    }
    return fmt::format("the unchanged job fails ({}){}; run it by hand first",
                       execution.signal ? fmt::format("signal {}", *execution.signal)
                                        : fmt::format("exit code {}", execution.exit_code.value_or(0)),
                       words.empty() ? "" : ": " + words);
}

std::string of_time_limit(const Receipt& receipt, const TrialSetup& setup) {
    const double last_s = receipt.series.empty() ? 0 : receipt.series.back().t_s;
    const double idle_s = receipt.execution.duration_s - last_s;
    return fmt::format(
        "the unchanged job reached the time limit of {:.0f} s after {} of {} updates, {:.0f} s after the last of them: "
        "set launch.timeout higher or launch.updates lower, unless it hangs",
        setup.timeout_s, receipt.series.size(), receipt.updates, idle_s);
}

std::string what_and_way_out(const TrialRecord& trial, const Receipt& receipt, const TrialSetup& setup,
                             const fs::path& folder) {
    const Execution& execution = receipt.execution;
    if (!execution.error.empty()) {
        return fmt::format("the job could not be started: {}; check launch.command and launch.cwd in infrarsi.yaml",
                           execution.error);
    }
    if (receipt.oom) {
        return fmt::format(
            "the unchanged job runs out of memory (it needs at least {:.2f} GiB): raise invariants.memory_cap_gib or "
            "make the job smaller",
            receipt.oom->need_gib);
    }
    if (execution.timed_out == "silence") {
        return fmt::format(
            "the unchanged job printed nothing for {:.0f} s and made {} of {} updates: it hangs, or waits for other "
            "ranks",
            setup.silence_s, receipt.series.size(), receipt.updates);
    }
    if (execution.timed_out == "wall") return of_time_limit(receipt, setup);
    if (execution.exit_code.value_or(0) != 0 || execution.signal) return of_exit(receipt, folder);
    if (receipt.series.empty()) {
        return "the job ended without a single optimizer update that could be seen: it never called step() of a torch "
               "optimizer and printed no step line that is known; paste the hook lines of adapters/README.md into its "
               "loop, or print lines such as `step 1 | loss 2.5 | dt 100 ms`";
    }
    if (static_cast<int>(receipt.series.size()) < receipt.updates) {
        return fmt::format("the unchanged job made {} updates, launch.updates asks for {}: set launch.updates to {}",
                           receipt.series.size(), receipt.updates, receipt.series.size());
    }
    return fmt::format(
        "the unchanged job breaks its own contract: {}; nothing can be compared with it until that is "
        "mended",
        trial.verdict_reason);
}

// The log of what failed: the job's own, or that of the check that it did not pass.
fs::path log_of(const TrialRecord& trial, const Receipt& receipt, const fs::path& folder) {
    const std::string failed = trial.failed_invariants.empty() ? "" : trial.failed_invariants.front();
    std::string check = failed == "eval_matches" ? "eval" : failed == "resume_continues" ? "resume" : "";
    for (std::size_t i = 0; failed == "user_tests" && check.empty() && i < receipt.tests.size(); ++i) {
        if (receipt.tests[i].exit_code != 0) check = fmt::format("test-{}", i + 1);
    }
    return check.empty() ? folder / "stderr.log" : folder / "checks" / check / "stderr.log";
}

}  // namespace

Error unusable_reference(const TrialRecord& trial, const Receipt& receipt, const TrialSetup& setup) {
    const fs::path folder = setup.trials_dir / trial.id;
    return {ErrorKind::unsupported, fmt::format("{}; see {}", what_and_way_out(trial, receipt, setup, folder),
                                                log_of(trial, receipt, folder).string())};
}

}  // namespace infrarsi
