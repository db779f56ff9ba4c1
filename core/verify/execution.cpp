// Layer 1: did it run, without failing, within its memory?

#include <algorithm>
#include <cmath>
#include <set>

#include "core/verify/invariants.h"

namespace infrarsi {

bool ended_cleanly(const Receipt& receipt) {
    const auto& run = receipt.execution;
    if (!run.error.empty() || !run.timed_out.empty() || run.cancelled) {
        return false;
    }
    return run.stopped == "after_updates" || (run.exit_code == 0 && !run.signal);
}

int updates_done(const Receipt& receipt) {
    int done = 0;
    for (const auto& update : receipt.series) {
        if (update.n != done + 1) {
            break;
        }
        ++done;
    }
    return done;
}

const UpdateRecord* update_at(const Receipt& receipt, int n) {
    const auto it = std::lower_bound(receipt.series.begin(), receipt.series.end(), n,
                                     [](const UpdateRecord& update, int wanted) { return update.n < wanted; });
    return it != receipt.series.end() && it->n == n ? &*it : nullptr;
}

double relative_deviation(double a, double b) {
    if (a == b) {
        return 0;
    }
    if (!std::isfinite(a) || !std::isfinite(b) || b == 0) {
        return HUGE_VAL;
    }
    return std::abs(a - b) / std::abs(b);
}

namespace {

constexpr int kFrozenRun = 5;  // identical values in a row

std::string short_text(std::string_view text) {
    return text.size() <= 160 ? std::string(text) : std::string(text.substr(0, 157)) + "...";
}

std::string place_of(const FailureLine& line) {
    if (line.line == 0) {
        return line.stream;
    }
    return fmt::format("{}:{}", line.stream, line.line);
}

template <class Field>
int longest_constant_run(const Receipt& receipt, Field field) {
    int longest = 0, run = 0;
    std::optional<double> last;
    for (const auto& update : receipt.series) {
        const auto& value = update.*field;
        run = !value ? 0 : (last && *last == *value) ? run + 1 : 1;
        last = value;
        longest = std::max(longest, run);
    }
    return longest;
}

template <class Field>
std::optional<std::string> not_finite(const Receipt& receipt, Field field, std::string_view name) {
    for (const auto& update : receipt.series) {
        if (const auto& value = update.*field; value && !std::isfinite(*value)) {
            return fmt::format("{} is {} at update {}", name, *value, update.n);
        }
    }
    return std::nullopt;
}

std::optional<std::string> frozen_series(const Comparison& c) {
    const int loss = longest_constant_run(c.candidate, &UpdateRecord::loss);
    if (loss >= std::min(kFrozenRun, std::max(3, c.candidate.updates)) &&
        loss > longest_constant_run(c.reference(), &UpdateRecord::loss)) {
        return fmt::format("the loss is frozen: the same value at {} updates in a row", loss);
    }
    if (loss >= kFrozenRun && loss >= c.candidate.updates) {
        return fmt::format("the loss is frozen at all {} updates, as it is in the reference: nothing is learned", loss);
    }
    // A clipped norm may stand still in an honest run; then it does so in the reference as well.
    const int norm = longest_constant_run(c.candidate, &UpdateRecord::grad_norm);
    if (norm >= kFrozenRun && norm > longest_constant_run(c.reference(), &UpdateRecord::grad_norm)) {
        return fmt::format("the gradient norm is frozen: the same value at {} updates in a row", norm);
    }
    return std::nullopt;
}

enum class Weight { fails, reported };

// Lines of communication, or of a harness's own stop, that come after the last update of a clean end are what shutting
// down looks like. Lines about the surroundings (a retried connection, a port in use) do not fail a run that went on to
// finish; lines about its own work do.
Weight weigh(const FailureLine& line, const Receipt& receipt) {
    if (!ended_cleanly(receipt) || updates_done(receipt) < receipt.updates) {
        return Weight::fails;
    }
    const bool after_last = !receipt.series.empty() && line.t_s > receipt.series.back().t_s;
    const auto& kind = line.failure_class;
    if (kind == "collective" || kind == "timeout") {
        return after_last ? Weight::reported : Weight::fails;
    }
    if (kind == "environment" || kind == "config" || kind == "killed") {
        return Weight::reported;
    }
    if (kind == "traceback" && after_last && receipt.execution.stopped == "after_updates" &&
        receipt.execution.exit_code != 0) {
        return Weight::reported;
    }
    return Weight::fails;
}

}  // namespace

InvariantResult completes(const Comparison& c) {
    const auto& receipt = c.candidate;
    const auto& run = receipt.execution;
    const auto fails = [](std::string why) { return result_of(InvariantId::completes, Status::fail, std::move(why)); };
    const int done = updates_done(receipt);
    const auto progress = fmt::format("{} of {} updates", done, receipt.updates);
    if (!run.error.empty()) {
        return fails("the job could not be started: " + run.error);
    }
    if (!run.timed_out.empty()) {
        return fails(fmt::format("timed out ({}) after {}", run.timed_out, progress));
    }
    if (run.cancelled) {
        return fails("cancelled after " + progress);
    }
    const bool stopped = run.stopped == "after_updates";
    if (!stopped && run.signal) {
        return fails(fmt::format("ended by signal {} after {}", *run.signal, progress));
    }
    if (!stopped && run.exit_code != 0) {
        return fails(run.exit_code ? fmt::format("exit code {} after {}", *run.exit_code, progress)
                                   : "no exit code was recorded, after " + progress);
    }
    if (receipt.series.empty() && c.reference().series.empty()) {
        return result_of(InvariantId::completes, Status::unchecked, "ended cleanly, but nothing counted its updates",
                         "run the job with the hook, or let it print a line per update");
    }
    if (done < receipt.updates) {
        return fails(fmt::format("ended cleanly after only {}", progress));
    }
    return result_of(
        InvariantId::completes, Status::pass,
        fmt::format("{}, {}", progress, stopped ? "stopped by the harness after the last" : "exit code 0"));
}

InvariantResult no_errors(const Comparison& c) {
    const auto& receipt = c.candidate;
    const auto fails = [](std::string why) { return result_of(InvariantId::no_errors, Status::fail, std::move(why)); };
    if (auto why = not_finite(receipt, &UpdateRecord::loss, "the loss")) {
        return fails(*why);
    }
    if (auto why = not_finite(receipt, &UpdateRecord::grad_norm, "the gradient norm")) {
        return fails(*why);
    }
    if (receipt.oom) {
        return fails("out of memory: " + short_text(receipt.oom->line));
    }
    const FailureLine* reported = nullptr;
    for (const auto& line : receipt.failures) {
        if (weigh(line, receipt) == Weight::fails) {
            return fails(fmt::format("{} ({}): {}", line.failure_class, place_of(line), short_text(line.text)));
        }
        if (reported == nullptr) {
            reported = &line;
        }
    }
    if (auto why = frozen_series(c)) {
        return fails(*why);
    }
    if (reported != nullptr) {
        return result_of(InvariantId::no_errors, Status::pass,
                         fmt::format("no failure; harmless in a run that ended cleanly: {} ({}): {}",
                                     reported->failure_class, place_of(*reported), short_text(reported->text)));
    }
    return result_of(InvariantId::no_errors, Status::pass,
                     fmt::format("no failure line; loss finite and moving over {} updates", receipt.series.size()));
}

InvariantResult memory_cap(const Comparison& c) {
    const auto& memory = c.candidate.memory;
    const auto id = InvariantId::memory_cap;
    const auto cap = c.rules.memory_cap_gib ? c.rules.memory_cap_gib : memory.cap_gib;
    if (!memory.peak_gib || !std::isfinite(*memory.peak_gib)) {
        if (c.reference().memory.peak_gib) {
            return result_of(id, Status::fail,
                             fmt::format("no peak memory was measured, which the reference has ({:.3f} "
                                         "GiB)",
                                         *c.reference().memory.peak_gib));
        }
        return result_of(id, Status::unchecked, "no peak memory was measured",
                         "run where the driver (nvidia-smi) or /proc shows the job's memory");
    }
    if (!cap) {
        return result_of(id, Status::pass,
                         fmt::format("peak {:.3f} GiB ({}); no cap is set", *memory.peak_gib, memory.source));
    }
    const bool within = *memory.peak_gib <= *cap;
    return result_of(id, within ? Status::pass : Status::fail,
                     fmt::format("peak {:.3f} GiB ({}) {} the cap of {:.3f} GiB", *memory.peak_gib, memory.source,
                                 within ? "is within" : "exceeds", *cap));
}

}  // namespace infrarsi
