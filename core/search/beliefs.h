#pragma once
// All that the history says, as one value: both models, the conflicts, what was visited, the incumbent. Built anew for
// each proposal from the problem and the history alone, so that a fresh controller with the same history believes the
// same.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/search/conflicts.h"
#include "core/search/features.h"
#include "core/search/history.h"
#include "core/search/memory_ledger.h"
#include "core/search/priors.h"
#include "core/search/surrogate.h"

namespace infrarsi {

// What is expected of a candidate, relative to the incumbent, whose own gain is measured.
struct Estimate {
    double gain = 0;      // total log gain over the reference
    double delta = 0;     // over the incumbent
    double sd = 0;        // of delta
    double p_fits = 1;    // memory
    double p_passes = 1;  // no conflict
    Gib need;

    [[nodiscard]] double p_good() const { return p_fits * p_passes; }
    [[nodiscard]] double upside() const { return delta + 2 * sd; }
};

class Beliefs {
public:
    // `offered` are patches that may be tried. problem.contract must be there.
    Beliefs(const SearchProblem& problem, const std::vector<Outcome>& history, const std::vector<Patch>& offered);

    [[nodiscard]] const SearchProblem& problem() const { return problem_; }
    [[nodiscard]] const Contract& contract() const { return *problem_.contract; }
    [[nodiscard]] const FeatureSpace& space() const { return space_; }
    [[nodiscard]] const Conflicts& conflicts() const { return conflicts_; }

    // The best valid candidate that is faster than the reference, else the reference itself with gain 0.
    [[nodiscard]] const Candidate& incumbent() const { return incumbent_; }
    [[nodiscard]] double incumbent_gain() const { return incumbent_gain_; }

    [[nodiscard]] Estimate estimate(const Candidate& candidate) const;
    // Peak memory of `to` over `from`.
    [[nodiscard]] Gib memory_change(const Candidate& from, const Candidate& to) const;

    [[nodiscard]] bool is_visited(const Candidate& candidate) const;
    // Present in a valid run.
    [[nodiscard]] bool is_measured(const std::string& knob, const Value& value) const;
    [[nodiscard]] bool is_measured(const Patch& patch) const;
    // Present in any run that was not the host's fault.
    [[nodiscard]] bool is_tried(const Patch& patch) const;
    // Settings and patches of a candidate for blame; a batch knob that only follows another is left out.
    [[nodiscard]] Items items(const Candidate& candidate) const;
    [[nodiscard]] std::string words(const Items& items) const;
    // The prior's or posterior's largest |log gain| over the knob's settings clears the gate.
    [[nodiscard]] bool is_big(const std::string& knob) const;

    // Outcomes that count (not transient), and those of them that changed settings.
    [[nodiscard]] int trials() const { return trials_; }
    [[nodiscard]] int setting_trials() const { return setting_trials_; }
    // Canonical candidates that were out of memory, latest first, and how many of the latest trials were so in a row.
    [[nodiscard]] const std::vector<Candidate>& out_of_memory() const { return out_of_memory_; }
    [[nodiscard]] int out_of_memory_in_a_row() const { return out_of_memory_in_a_row_; }
    // Trials since the incumbent last improved by more than the gate.
    [[nodiscard]] int stalled() const { return stalled_; }

private:
    [[nodiscard]] std::vector<int> identity(const Candidate& candidate) const;
    [[nodiscard]] Items items_of(const SparseRow& time_row) const;
    void learn_time(const std::vector<Outcome>& history);
    void learn_memory(const std::vector<Outcome>& history);
    void learn_conflicts(const std::vector<Outcome>& history);
    void count(const std::vector<Outcome>& history);

    const SearchProblem& problem_;
    FeatureSpace space_;
    std::vector<SettingPrior> priors_;  // per feature; of a slope its scale only
    std::set<std::string> followers_;   // batch knobs that follow the first
    Surrogate time_;
    MemoryLedger memory_;
    Conflicts conflicts_;
    // What a candidate contains → its runs by two, transient ones by one. Canonical candidates with equal features are
    // one, so equal settings in two spellings, or patches in another order, are not paid for twice.
    std::map<std::vector<int>, int> visits_;
    std::set<int> measured_, tried_;  // features
    Candidate incumbent_;
    double incumbent_gain_ = 0;
    SparseRow incumbent_row_;
    double incumbent_prediction_ = 0;
    std::vector<Candidate> out_of_memory_;
    int out_of_memory_in_a_row_ = 0;
    int trials_ = 0, setting_trials_ = 0, stalled_ = 0;
};

}  // namespace infrarsi
