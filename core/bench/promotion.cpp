// The promotion of a rehearsal: finalists and the reference, interleaved, measured afresh.

#include <cmath>

#include "core/bench/rehearsal.h"
#include "core/measure/window.h"

namespace infrarsi::bench {

namespace {

constexpr int kMostBlocks = 3;

struct LogTimes {
    double mean = 0, median = 0;
};

LogTimes log_times(const Trial& trial) {
    const auto window = window_stats(trial.receipt);
    INFRARSI_CHECK(window, "a valid full run has a window");
    return {std::log(window->mean_s), std::log(window->median_s)};
}

}  // namespace

Trial Rehearsal::fresh_run(const sim::Candidate& candidate, Promotion& promotion) {
    Trial trial;
    trial.plan.candidate = candidate;
    sim::Request request;
    request.candidate = candidate;
    trial.answer = simulator_.answer(request);
    promotion.cost_units += trial.answer.cost_units;
    judge_trial(trial);
    return trial;
}

Retest Rehearsal::retest(const sim::Candidate& candidate, Promotion& promotion) {
    Retest retest;
    retest.candidate = candidate;
    const auto reject = [&](std::string why) {
        retest.decision = Decision::reject;
        retest.reason = std::move(why);
        return retest;
    };
    if ((candidate.patches & ~working_) != 0) return reject("a patch of it does not work");
    std::vector<PairResult> pairs;
    Trial last;
    while (retest.decision == Decision::undecided && static_cast<int>(pairs.size()) < kMostBlocks) {
        PairResult pair;
        for (const bool is_candidate : {false, true, true, false}) {
            Trial trial = fresh_run(is_candidate ? candidate : reference(), promotion);
            if (is_candidate) retest.verdicts.push_back(*trial.verdict);
            if (!trial.is_valid()) return reject("a fresh run is not valid: " + trial.verdict->reason);
            const LogTimes times = log_times(trial);
            pair.log_gain += (is_candidate ? -0.5 : 0.5) * times.mean;
            pair.log_gain_median += (is_candidate ? -0.5 : 0.5) * times.median;
            if (is_candidate) last = std::move(trial);
        }
        pairs.push_back(pair);
        retest.gain = judge_pairs(pairs, doctor_.noise);
        retest.decision = retest.gain.decision;
        retest.reason = retest.gain.reason;
    }
    if (retest.decision != Decision::promote) return retest;
    const Verdict verdict =
        judge_promotion(last.receipt, evidence(job_.updates), job_.contract.invariants, retest.gain);
    return verdict.valid ? retest : reject(verdict.reason);
}

Promotion Rehearsal::promote(const std::vector<sim::Candidate>& finalists) {
    const Stopwatch watch(*this);
    Promotion promotion;
    for (const sim::Candidate& finalist : finalists) {
        if (static_cast<int>(promotion.retests.size()) == kMostFinalists) break;
        promotion.retests.push_back(retest(finalist, promotion));
        if (promotion.retests.back().decision != Decision::promote) continue;
        promotion.winner = finalist;
        break;
    }
    return promotion;
}

}  // namespace infrarsi::bench
