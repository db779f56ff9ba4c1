#pragma once
// All that the trials say, as one value: time and memory models, blame, what was visited, the incumbent. Built anew for
// each proposal from the space and the history alone, so that the same history gives the same proposal.

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/search/blame.h"
#include "core/search/memory_ledger.h"
#include "core/search/space.h"
#include "core/search/time_model.h"

namespace infrarsi {

enum class RunKind {
    valid,         // passed every invariant that a run of its length can show
    rejected,      // ran, but broke the contract
    oom,           // needs more memory than there is
    failed,        // crash, hang
    patch_failed,  // a patch of it does not work; nothing ran
    transient      // the host's fault; says nothing
};

struct Run {
    Point point;
    RunKind kind = RunKind::failed;
    bool has_time = false;  // y was measured, whatever the verdict
    double y = 0;           // ln(T_ref / T)
    double sigma = 0;
    double peak_gib = 0;      // 0: not measured
    double need_gib = 0;      // of an oom, a lower bound; 0: unknown
    bool thrashed = false;    // the allocator was at its limit
    double cost = 0;          // in runs of the reference
    int updates = 0;          // that it was asked for; 0: full length
    int failure_kind = 0;     // of rejected and failed: equal for equal causes, as far as one can tell
    std::vector<int> broken;  // of patch_failed: the patches that do not work
};

// What a trial costs, in runs of the reference.
struct Costs {
    double startup_share = 0.25;  // of a full run of the reference
    int updates = 30, warmup = 10;
    double oom = 0.25, failed = 0.5, patch_failed = 0.3;
};

// Chances that an idea becomes a patch that works, by attempt: tried once more with its error in hand it works more
// often.
struct PatchChances {
    double first = 0.35, per_attempt = 0.15;
    int most_attempts = 4;
};

struct SearchSetting {
    Costs costs;
    PatchChances patches;
    double budget = 24;     // runs of the reference
    int short_updates = 0;  // of a screening run; 0: always full runs
    std::uint64_t seed = 0;
    std::set<std::string> off;  // operators left out, for the ablation table
};

struct Guess {
    double y = 0;      // log gain over the reference
    double delta = 0;  // over the incumbent
    double sd = 0;     // of delta
    double p_fits = 1, p_works = 1;
    double p_passes = 1;  // nothing in it fails
    double p_holds = 1;   // its numbers keep to the contract at full length, given that it starts
    Gib need;

    [[nodiscard]] double p_good() const { return p_fits * p_passes * p_works; }
    [[nodiscard]] double upside() const { return delta + 2 * sd; }
};

class Knowledge {
public:
    Knowledge(const Space& space, const SearchSetting& setting, const std::vector<Run>& history);

    [[nodiscard]] const Space& space() const { return space_; }
    [[nodiscard]] const SearchSetting& setting() const { return setting_; }
    [[nodiscard]] const TimeModel& time() const { return time_; }
    [[nodiscard]] const Blame& blame() const { return blame_; }
    [[nodiscard]] const std::vector<Run>& history() const { return history_; }

    [[nodiscard]] const Point& incumbent() const { return incumbent_; }
    [[nodiscard]] double incumbent_y() const { return incumbent_y_; }
    [[nodiscard]] bool is_confirmed() const { return is_confirmed_; }  // the incumbent passed at full length
    [[nodiscard]] double confirmed_y() const { return confirmed_y_; }  // of the best that did
    [[nodiscard]] double spent() const { return spent_; }
    [[nodiscard]] int stalled() const { return stalled_; }  // runs since the incumbent improved by the gate
    [[nodiscard]] bool is_visited(const Point& point) const { return visited_.contains(point); }

    [[nodiscard]] const Guess& guess(const Point& point) const;
    [[nodiscard]] double run_cost(const Guess& guess, int updates) const;  // when it completes
    // Expected improvement over the incumbent if it passes, log units.
    [[nodiscard]] static double improvement(const Guess& guess);
    // The same, priced by the chances and by what a trial costs: log units per run of
    // the reference.
    [[nodiscard]] double worth(const Guess& guess) const;
    [[nodiscard]] Gib memory_change(const Point& from, const Point& to) const;

    [[nodiscard]] bool works(std::size_t patch) const { return works_[patch]; }
    [[nodiscard]] int attempts(std::size_t patch) const { return attempts_[patch]; }
    [[nodiscard]] bool may_try(std::size_t patch) const {
        return works_[patch] || attempts_[patch] < setting_.patches.most_attempts;
    }
    [[nodiscard]] double chance_of(std::size_t patch) const;

private:
    [[nodiscard]] Guess compute(const Point& point) const;
    [[nodiscard]] SparseRow memory_row(const Point& point) const;
    void count();
    void choose_incumbent();
    void learn_memory();

    const Space& space_;
    const SearchSetting& setting_;
    const std::vector<Run>& history_;
    std::vector<std::vector<int>> memory_features_;  // axis → value
    int first_patch_feature_ = 0;
    struct Pair {
        std::size_t axis_a = 0, axis_b = 0;
        int value_a = 0, value_b = 0;
        double mean = 0;
    };
    std::vector<Pair> pairs_;
    int first_pair_feature_ = 0;
    TimeModel time_;
    MemoryLedger memory_;
    Blame blame_;
    std::set<Point> visited_;
    std::vector<bool> works_;
    std::vector<int> attempts_;
    int successes_ = 0, tries_ = 0;
    Point incumbent_;
    double incumbent_y_ = 0, confirmed_y_ = 0, spent_ = 0;
    bool is_confirmed_ = true;
    int stalled_ = 0;
    TimeModel::Prediction incumbent_at_;
    mutable std::unordered_map<Point, Guess, PointHash> guesses_;  // operators meet the same candidates again
};

// φ(n): the share of a full run that a run of n updates costs.
[[nodiscard]] double run_share(const Costs& costs, int updates);

// What may be delivered, best first: valid runs by their gain, without those that are believed to break the contract at
// full length. At most `most`.
[[nodiscard]] std::vector<Point> finalists(const Space& space, const SearchSetting& setting,
                                           const std::vector<Run>& history, int most);

}  // namespace infrarsi
