// Baselines that know nothing of the job and draw complete configurations: random search and TPE.

#include <algorithm>
#include <cmath>

#include "core/bench/baselines.h"

namespace infrarsi::bench {

namespace {

constexpr int kRandomStarts = 10;
constexpr std::size_t kMostGood = 25;
constexpr double kGoodShare = 0.1;
constexpr int kDrawsPerKnob = 24;
constexpr double kFailed = -1;  // y of what failed

std::size_t below(sim::RandomStream& luck, std::size_t count) {
    return static_cast<std::size_t>(luck.uniform() * static_cast<double>(count));
}

// Indices of each knob's legal values.
std::vector<std::vector<int>> legal_values(const JobView& job) {
    std::vector<std::vector<int>> legal;
    for (const KnobView& knob : job.knobs) {
        std::vector<int>& values = legal.emplace_back();
        for (std::size_t v = 0; v < knob.values.size(); ++v) {
            if (knob.values[v].is_legal) values.push_back(static_cast<int>(v));
        }
    }
    return legal;
}

sim::Candidate uniform_candidate(const std::vector<std::vector<int>>& legal, sim::RandomStream& luck) {
    sim::Candidate candidate;
    for (const auto& values : legal) candidate.values.push_back(values[below(luck, values.size())]);
    return candidate;
}

// The rehearsal refuses nothing that these baselines ask for while a trial may start.
Trial run_trial(Rehearsal& rehearsal, const sim::Candidate& candidate) {
    auto trial = rehearsal.run({.candidate = candidate});
    INFRARSI_CHECK(trial.has_value(), "a baseline asks for what the job has");
    return std::move(*trial);
}

struct Seen {
    sim::Candidate candidate;
    double gain = 0;
    int trial = 0;  // breaks ties
};

// Smoothed frequencies of a knob's values: 1/values in all is added to each count.
std::vector<double> frequencies(const std::vector<Seen>& seen, std::size_t knob, const std::vector<int>& values) {
    const double smoothing = 1 / static_cast<double>(values.size());
    std::vector<double> result(values.size(), smoothing);
    for (const Seen& each : seen) {
        const auto found = std::find(values.begin(), values.end(), each.candidate.values[knob]);
        result[static_cast<std::size_t>(found - values.begin())] += 1;
    }
    for (double& each : result) each /= static_cast<double>(seen.size()) + 1;
    return result;
}

std::size_t draw_from(const std::vector<double>& weights, sim::RandomStream& luck) {
    double left = luck.uniform();
    for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
        left -= weights[i];
        if (left < 0) return i;
    }
    return weights.size() - 1;
}

sim::Candidate parzen_candidate(std::vector<Seen> seen, const std::vector<std::vector<int>>& legal,
                                sim::RandomStream& luck) {
    std::sort(seen.begin(), seen.end(),
              [](const Seen& a, const Seen& b) { return a.gain != b.gain ? a.gain > b.gain : a.trial < b.trial; });
    const auto share = static_cast<std::size_t>(std::ceil(kGoodShare * static_cast<double>(seen.size())));
    const auto split = seen.begin() + static_cast<std::ptrdiff_t>(std::min(kMostGood, share));
    const std::vector<Seen> good(seen.begin(), split), bad(split, seen.end());
    sim::Candidate candidate;
    for (std::size_t k = 0; k < legal.size(); ++k) {
        const auto in_good = frequencies(good, k, legal[k]), in_bad = frequencies(bad, k, legal[k]);
        std::size_t best = 0;
        double best_score = -HUGE_VAL;
        for (int draw = 0; draw < kDrawsPerKnob; ++draw) {
            const std::size_t value = draw_from(in_good, luck);
            const double score = std::log(in_good[value]) - std::log(in_bad[value]);
            if (score <= best_score) continue;
            best_score = score;
            best = value;
        }
        candidate.values.push_back(legal[k][best]);
    }
    return candidate;
}

Delivery play_random(Rehearsal& rehearsal, const std::string& name, Trust trust) {
    const auto legal = legal_values(rehearsal.job());
    sim::RandomStream luck = rehearsal.luck(name);
    BestSoFar best(rehearsal, trust);
    while (rehearsal.may_start()) best.offer(run_trial(rehearsal, uniform_candidate(legal, luck)));
    return best.deliver();
}

Delivery play_tpe(Rehearsal& rehearsal, const std::string& name, Trust trust) {
    const auto legal = legal_values(rehearsal.job());
    sim::RandomStream luck = rehearsal.luck(name);
    BestSoFar best(rehearsal, trust);
    std::vector<Seen> seen;
    while (rehearsal.may_start()) {
        const bool is_start = seen.size() < kRandomStarts;
        const auto candidate = is_start ? uniform_candidate(legal, luck) : parzen_candidate(seen, legal, luck);
        const Trial trial = run_trial(rehearsal, candidate);
        best.offer(trial);
        seen.push_back({candidate, best.gain_of(trial).value_or(kFailed), rehearsal.trials()});
    }
    return best.deliver();
}

}  // namespace

Strategy random_search(std::string name, Trust trust) {
    return {name, [name, trust](Rehearsal& rehearsal) { return play_random(rehearsal, name, trust); }};
}

Strategy tpe_search(std::string name, Trust trust) {
    return {name, [name, trust](Rehearsal& rehearsal) { return play_tpe(rehearsal, name, trust); }};
}

}  // namespace infrarsi::bench
