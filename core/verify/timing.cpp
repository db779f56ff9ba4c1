// Layer 5: two clocks that agree, resumption, and the user's own tests.

#include <cmath>

#include "core/verify/invariants.h"

namespace infrarsi {
namespace {

constexpr double kClockAgreement = 0.03;  // |Δ ln|, paper Table 8
constexpr double kSkewShare = 0.02, kSkewSeconds = 1.0;

struct Clocks {
    double harness_s = 0, reported_s = 0;  // means over the same updates
    int count = 0;
};

// Step times on the harness's clock and as the job states them, over the window's updates that have both. Noise of the
// machine is in both and cancels. A state check after update n is in n by the job's clock (it happens within the step)
// and in n + 1 by the harness's, so checked updates are not left out: over the sum both clocks have it.
Clocks clocks_of(const Receipt& receipt) {
    Clocks clocks;
    for (std::size_t i = 1; i < receipt.series.size(); ++i) {
        const auto& update = receipt.series[i];
        if (update.n <= receipt.warmup || update.n > receipt.updates || update.n != receipt.series[i - 1].n + 1 ||
            !update.reported_s || !(*update.reported_s > 0)) {
            continue;
        }
        const double time = update.t_s - receipt.series[i - 1].t_s;
        if (!(time > 0)) {
            continue;
        }
        clocks.harness_s += time;
        clocks.reported_s += *update.reported_s;
        ++clocks.count;
    }
    if (clocks.count > 0) {
        clocks.harness_s /= clocks.count;
        clocks.reported_s /= clocks.count;
    }
    return clocks;
}

std::optional<std::string> odd_arrivals(const Receipt& receipt) {
    double last = 0;
    for (const auto& update : receipt.series) {
        if (!std::isfinite(update.t_s) || update.t_s <= 0) {
            return fmt::format("update {} arrived at {} s", update.n, update.t_s);
        }
        if (update.t_s <= last) {
            return fmt::format("update {} arrived at {:.6f} s, not after the one before ({:.6f} s)", update.n,
                               update.t_s, last);
        }
        last = update.t_s;
    }
    return std::nullopt;
}

std::optional<std::string> clock_skew(const Receipt& receipt) {
    const auto& run = receipt.execution;
    const double wall = run.wall_end_s - run.wall_start_s;
    const double limit = kSkewShare * run.duration_s + kSkewSeconds;
    if (run.wall_start_s > 0 && std::abs(wall - run.duration_s) > limit) {
        return fmt::format("the wall clock went {:.3f} s while the monotonic clock went {:.3f} s", wall,
                           run.duration_s);
    }
    if (!receipt.series.empty() && receipt.series.back().t_s > run.duration_s + limit) {
        return fmt::format("the last update arrived at {:.3f} s of a run of {:.3f} s", receipt.series.back().t_s,
                           run.duration_s);
    }
    return std::nullopt;
}

InvariantResult compare_clocks(const Clocks& candidate, const Clocks& reference) {
    const auto id = InvariantId::timing_consistent;
    const double harness = std::log(reference.harness_s / candidate.harness_s);
    const double reported = std::log(reference.reported_s / candidate.reported_s);
    const double difference = std::abs(harness - reported);
    const auto text = fmt::format(
        "gain {:+.2f} % on the harness's clock, {:+.2f} % in the job's own step time; "
        "|Δ ln| {:.4f}, at most {:.2f}",
        100 * std::expm1(harness), 100 * std::expm1(reported), difference, kClockAgreement);
    if (difference <= kClockAgreement) {
        return result_of(id, Status::pass, text);
    }
    // A constant cost that the job does not time (the hook, its own logging) weighs more in a shorter step. It hides
    // nothing as long as it is the same number of seconds as in the reference.
    const double own = candidate.harness_s - candidate.reported_s, other = reference.harness_s - reference.reported_s;
    if (own >= 0 && other >= 0 && std::abs(own - other) <= kClockAgreement * candidate.harness_s) {
        return result_of(id, Status::pass,
                         fmt::format("{}; explained by the {:.4f} s a step that the job does not time ({:.4f} s in the "
                                     "reference)",
                                     text, own, other));
    }
    return result_of(id, Status::fail, text);
}

}  // namespace

InvariantResult timing_consistent(const Comparison& c) {
    const auto id = InvariantId::timing_consistent;
    if (auto why = odd_arrivals(c.candidate)) {
        return result_of(id, Status::fail, *why);
    }
    if (auto why = clock_skew(c.candidate)) {
        return result_of(id, Status::fail, *why);
    }
    if (c.candidate.series.size() < 2) {
        const bool had = c.reference().series.size() >= 2;
        return result_of(id, had ? Status::fail : Status::unchecked,
                         had ? "fewer than two updates have a time, which the reference's have"
                             : "fewer than two updates have a time",
                         had ? "" : "run the job with the hook, or let it print a line per update");
    }
    const auto candidate = clocks_of(c.candidate), reference = clocks_of(c.reference());
    if (candidate.count > 0 && reference.count > 0) {
        return compare_clocks(candidate, reference);
    }
    if (reference.count > 0 && updates_done(c.candidate) >= c.candidate.updates) {
        return result_of(id, Status::fail, "the job no longer states its step time, which the reference does");
    }
    return result_of(
        id, Status::pass,
        fmt::format("arrivals are monotonic, wall and monotonic clock agree over {:.2f} s; the job reports no "
                    "step time of its own",
                    c.candidate.execution.duration_s));
}

InvariantResult resume_continues(const Comparison& c) {
    const auto id = InvariantId::resume_continues;
    if (!c.rules.resume) {
        return result_of(id, Status::unchecked, "no resume check is configured");
    }
    const auto& resume = c.candidate.resume;
    if (!resume) {
        return result_of(id, Status::unchecked, "the resume check was not run",
                         fmt::format("save a checkpoint at update {} and resume from it", c.rules.resume->save_at));
    }
    if (resume->exit_code != 0) {
        return result_of(
            id, Status::fail,
            fmt::format("the run resumed from update {} ended with exit code {}{}", c.rules.resume->save_at,
                        resume->exit_code, resume->note.empty() ? "" : ": " + resume->note));
    }
    if (!resume->value) {
        return result_of(
            id, Status::fail,
            "the resumed run shows no loss to compare" + (resume->note.empty() ? "" : ": " + resume->note));
    }
    const double deviation = std::abs(*resume->value);
    const bool within = std::isfinite(deviation) && deviation <= c.rules.tolerance;
    return result_of(id, within ? Status::pass : Status::fail,
                     fmt::format("the loss after resuming deviates by {:.3g} %, tolerance {:.3g} %", 100 * deviation,
                                 100 * c.rules.tolerance));
}

InvariantResult user_tests(const Comparison& c) {
    const auto id = InvariantId::user_tests;
    if (c.rules.tests.empty()) {
        return result_of(id, Status::unchecked, "no test command is configured");
    }
    for (const auto& command : c.rules.tests) {
        const auto it = std::find_if(c.candidate.tests.begin(), c.candidate.tests.end(),
                                     [&](const CheckResult& test) { return test.command == command; });
        if (it == c.candidate.tests.end()) {
            return result_of(id, Status::unchecked, "not run: " + command, "run the configured test commands");
        }
        if (it->exit_code != 0) {
            return result_of(id, Status::fail,
                             fmt::format("exit code {}: {}{}", it->exit_code, command,
                                         it->note.empty() ? "" : " (" + it->note + ")"));
        }
    }
    return result_of(id, Status::pass, fmt::format("{} test commands exit 0", c.rules.tests.size()));
}

}  // namespace infrarsi
