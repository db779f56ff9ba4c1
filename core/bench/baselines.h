#pragma once
// The baselines: what others' search does, in a few lines each, with its native rules (SIMULATOR.md §8). Each delivers
// its incumbent, the best y = ln(reference / window mean) of a trial that completed and that the verifier passed; the
// `-unverified` variants trust whatever completed. Parameters are set once over all workloads.

#include "core/bench/strategy.h"

namespace infrarsi::bench {

enum class Trust { verified, whatever_completes };

// What a baseline holds to be best; starts at the reference with y = 0.
class BestSoFar {
public:
    BestSoFar(Rehearsal& rehearsal, Trust trust)
        : rehearsal_(rehearsal), trust_(trust), candidate_(rehearsal.reference()) {}

    // y, where the trial counts.
    [[nodiscard]] std::optional<double> gain_of(const Trial& trial) const;
    // True when the trial became the incumbent.
    bool offer(const Trial& trial);

    [[nodiscard]] const sim::Candidate& candidate() const { return candidate_; }
    [[nodiscard]] Delivery deliver() const { return {candidate_}; }

private:
    Rehearsal& rehearsal_;
    Trust trust_;
    sim::Candidate candidate_;
    double gain_ = 0;
};

// Uniform over complete configurations of legal values.
[[nodiscard]] Strategy random_search(std::string name, Trust trust);

// Tree-structured Parzen estimator, one knob at a time.
[[nodiscard]] Strategy tpe_search(std::string name, Trust trust);

struct AgentRules {
    bool knobs_only = false;
    double temperature = 0.01;  // τ: of the softmax over scores
    double stray = 0;           // ε: chance of a uniform draw
    int options = 1;            // draws, of which the best goes on
    double judgement = 0;       // j: weight of what it knows against the prior
    bool uses_familiarity = false;
    double two = 0;     // chance of a second change
    double pair = 0;    // chance to pair what ran out of memory with a saver
    double repeat = 0;  // chance that what was tried is available again
    sim::Support support = sim::Support::plain;
    std::optional<int> most_proposals;
};

// An agent that changes its incumbent by one atom, at times two.
[[nodiscard]] Strategy agent_search(std::string name, Trust trust, const AgentRules& rules);

// random, tpe, coordinate, greedy, best-of-4, and each with `-unverified`.
[[nodiscard]] std::vector<Strategy> baselines();

}  // namespace infrarsi::bench
