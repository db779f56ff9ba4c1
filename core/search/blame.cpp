#include "core/search/blame.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace infrarsi {

namespace {

constexpr int kRounds = 30;
constexpr double kSettled = 1e-3;
constexpr double kLeastDoubt = 1e-6;
constexpr double kMostBlame = 0.9999;
constexpr int kMostTripleItems = 14;  // changed items of a failure up to which triples are listed
constexpr double kLeastShare = 0.01;  // of a failure's suspicion, under which a suspect goes with the rest

bool contains(const Items& items, const Items& tuple) {
    return std::includes(items.begin(), items.end(), tuple.begin(), tuple.end());
}

double log_odds(double chance) {
    return std::log(chance / (1 - chance));
}

// ln(1 + eˣ).
double log1p_exp(double x) {
    return x > 30 ? x : std::log1p(std::exp(x));
}

// The failures of one stage, weighed kind by kind.
class Inquiry {
public:
    Inquiry(const ItemTable& table, const BlameRules& rules, const std::vector<BlameTrial>& trials,
            const std::vector<Items>& items, bool late)
        : table_(table), rules_(rules), trials_(trials), items_(items), late_(late) {
        const auto cells = static_cast<std::size_t>(table.count() * table.count());
        cleared_.assign(cells, 0);
        soft_passes_.assign(cells, 0);
        sort_trials();
    }

    Blame::Stage run(std::vector<Suspect>& all) {
        Blame::Stage stage;
        stage.innocence.assign(cleared_.size(), 0.0);
        for (int a = 0; a < table_.count(); ++a) {
            for (int b = a; b < table_.count(); ++b) {
                if (cleared_[at(a, b)] != 0) continue;
                stage.innocence[at(a, b)] = std::log1p(-prior(a, b) * std::exp(doubt(a, b)));
            }
        }
        std::set<int> kinds;
        for (const std::size_t t : failures_) kinds.insert(trials_[t].kind);
        std::map<Items, double> innocence;  // over the kinds
        for (const int kind : kinds) {
            list_suspects(kind);
            weigh(stage);
            for (std::size_t s = 0; s < tuples_.size(); ++s) innocence[tuples_[s]] += std::log1p(-blame_[s]);
        }
        for (const auto& [tuple, innocent] : innocence) all.push_back({tuple, -std::expm1(innocent)});
        return stage;
    }

private:
    [[nodiscard]] std::size_t at(int a, int b) const { return static_cast<std::size_t>(a * table_.count() + b); }

    // What a run says of this stage: it failed in it, it came through (for sure or, late and short, perhaps), or it
    // never got there.
    void sort_trials() {
        using Stage = BlameTrial::Stage;
        for (std::size_t t = 0; t < trials_.size(); ++t) {
            const BlameTrial& trial = trials_[t];
            const bool came_through = trial.stage == Stage::passed || (!late_ && trial.stage == Stage::late);
            if (trial.stage == (late_ ? Stage::late : Stage::early)) failures_.push_back(t);
            if (!came_through) continue;
            const bool is_sure = !late_ || trial.is_full;
            if (is_sure) passes_.push_back(t);
            for (const int a : items_[t]) {
                for (const int b : items_[t]) {
                    if (is_sure) {
                        cleared_[at(a, b)] = 1;
                    } else {
                        ++soft_passes_[at(a, b)];
                    }
                }
            }
        }
    }

    [[nodiscard]] double prior(int a, int b) const {
        if (!table_.is_changed(a) && !table_.is_changed(b)) return 0;  // the reference runs
        const double share = late_ ? rules_.late_share : 1 - rules_.late_share;
        if (a == b && table_.is_patch(a)) return late_ ? rules_.patch : rules_.single;
        if (a == b) return share * rules_.single;
        const bool both_changed = table_.is_changed(a) && table_.is_changed(b);
        if (table_.is_patch(a) || table_.is_patch(b)) return both_changed ? share * rules_.patch_pair : 0;
        return share * (both_changed ? rules_.pair : rules_.pair_reference);
    }

    // ln of the odds that soft passes leave.
    [[nodiscard]] double doubt(int a, int b) const {
        return std::log(rules_.hidden + (1 - rules_.hidden) * std::pow(rules_.short_misses, soft_passes_[at(a, b)]));
    }

    void list_suspects(int kind) {
        known_.clear();
        tuples_.clear();
        base_.clear();
        of_failure_.clear();
        for (const std::size_t t : failures_) {
            if (trials_[t].kind != kind) continue;
            of_failure_.emplace_back();
            const Items& of = items_[t];
            for (std::size_t a = 0; a < of.size(); ++a) {
                for (std::size_t b = a; b < of.size(); ++b) {
                    if (cleared_[at(of[a], of[b])] != 0) continue;
                    suspect(kind, a == b ? Items{of[a]} : Items{of[a], of[b]}, prior(of[a], of[b]));
                }
            }
            const auto changes = std::count_if(of.begin(), of.end(), [&](int item) { return table_.is_changed(item); });
            if (changes <= kMostTripleItems) list_triples(kind, of);
        }
    }

    void list_triples(int kind, const Items& of) {
        const double chance = rules_.triple * (late_ ? rules_.late_share : 1 - rules_.late_share);
        for (std::size_t a = 0; a < of.size(); ++a) {
            for (std::size_t b = a + 1; b < of.size(); ++b) {
                for (std::size_t c = b + 1; c < of.size() && !table_.is_patch(of[c]); ++c) {
                    const int changed = (table_.is_changed(of[a]) ? 1 : 0) + (table_.is_changed(of[b]) ? 1 : 0) +
                                        (table_.is_changed(of[c]) ? 1 : 0);
                    if (changed < 2) continue;
                    const Items tuple{of[a], of[b], of[c]};
                    const bool is_cleared = std::any_of(passes_.begin(), passes_.end(),
                                                        [&](std::size_t t) { return contains(items_[t], tuple); });
                    if (!is_cleared) suspect(kind, tuple, chance);
                }
            }
        }
    }

    // Adds a tuple to the suspects of the failure at hand.
    void suspect(int kind, const Items& tuple, double chance) {
        if (chance <= 0) return;
        const auto [entry, is_new] = known_.try_emplace(tuple, tuples_.size());
        of_failure_.back().push_back(entry->second);
        if (!is_new) return;
        double odds = log_odds(chance);
        for (const std::size_t t : failures_) {
            if (trials_[t].kind != kind && contains(items_[t], tuple)) odds += std::log(rules_.other_kind);
        }
        if (tuple.size() < 3) odds += doubt(tuple.front(), tuple.back());
        tuples_.push_back(tuple);
        base_.push_back(odds);
    }

    // Belief propagation between suspects and failures: how much likelier is a failure if this suspect is guilty than
    // if only the others may be, these by all that is known of them but from this failure. Exact for one failure; a few
    // sweeps settle the rest.
    void weigh(Blame::Stage& stage) {
        std::vector<std::vector<double>> messages;
        for (const auto& of : of_failure_) messages.emplace_back(of.size(), 0.0);
        std::vector<double> odds = base_;
        for (int round = 0; round < kRounds; ++round) {
            double moved = 0;
            for (std::size_t f = 0; f < of_failure_.size(); ++f) {
                const auto& of = of_failure_[f];
                std::vector<double> innocent;  // ln(1 − chance) without this failure
                double all = 0;
                for (std::size_t k = 0; k < of.size(); ++k) {
                    innocent.push_back(-log1p_exp(odds[of[k]] - messages[f][k]));
                    all += innocent.back();
                }
                for (std::size_t k = 0; k < of.size(); ++k) {
                    const double message = -std::log(std::max(-std::expm1(all - innocent[k]), kLeastDoubt));
                    const double next = 0.5 * (message + messages[f][k]);
                    moved = std::max(moved, std::abs(next - messages[f][k]));
                    odds[of[k]] += next - messages[f][k];
                    messages[f][k] = next;
                }
            }
            if (moved < kSettled) break;
        }
        blame_.clear();
        for (const double value : odds) blame_.push_back(std::min(1 / (1 + std::exp(-value)), kMostBlame));
        for (std::size_t f = 0; f < of_failure_.size(); ++f) {
            Blame::Failure failure;
            double all = 0;
            for (std::size_t k = 0; k < of_failure_[f].size(); ++k) {
                all += log1p_exp(odds[of_failure_[f][k]] - messages[f][k]);
            }
            for (std::size_t k = 0; k < of_failure_[f].size(); ++k) {
                const std::size_t s = of_failure_[f][k];
                const double chance = std::min(1 / (1 + std::exp(messages[f][k] - odds[s])), kMostBlame);
                if (chance < kLeastShare * all) {
                    failure.rest += std::log1p(-chance);
                } else {
                    failure.suspects.push_back({tuples_[s], chance});
                }
            }
            stage.failures.push_back(std::move(failure));
        }
    }

    const ItemTable& table_;
    const BlameRules& rules_;
    const std::vector<BlameTrial>& trials_;
    const std::vector<Items>& items_;
    bool late_;
    std::vector<std::size_t> passes_, failures_;
    std::vector<char> cleared_;
    std::vector<int> soft_passes_;  // that perhaps would not have shown it
    // Of the kind at hand.
    std::map<Items, std::size_t> known_;
    std::vector<Items> tuples_;
    std::vector<double> base_, blame_;
    std::vector<std::vector<std::size_t>> of_failure_;
};

}  // namespace

ItemTable::ItemTable(const Space& space) {
    for (const Axis& axis : space.axes) {
        offsets_.push_back(count());
        for (int value = 0; value < static_cast<int>(axis.labels.size()); ++value) {
            changed_.push_back(value != axis.reference ? 1 : 0);
        }
    }
    first_patch_ = count();
    changed_.resize(changed_.size() + space.patches.size(), 1);
}

Items ItemTable::of(const Point& point) const {
    Items items;
    for (std::size_t axis = 0; axis < point.values.size(); ++axis) items.push_back(offsets_[axis] + point.values[axis]);
    for (std::size_t i = 0; i < point.patches.size(); ++i) {
        if (point.patches[i] != 0) items.push_back(first_patch_ + static_cast<int>(i));
    }
    return items;
}

std::string ItemTable::words(const Space& space, const Items& items) const {
    std::string result;
    for (const int item : items) {
        if (!result.empty()) result += " with ";
        if (is_patch(item)) {
            result += "patch " + space.patches[static_cast<std::size_t>(item - first_patch_)].name;
            continue;
        }
        const auto axis =
            static_cast<std::size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), item) - offsets_.begin() - 1);
        const auto value = static_cast<std::size_t>(item - offsets_[axis]);
        result += space.axes[axis].name + "=" + space.axes[axis].labels[value];
    }
    return result;
}

Blame::Blame(const Space& space, const std::vector<BlameTrial>& trials, const BlameRules& rules)
    : space_(space), table_(space) {
    std::vector<Items> items;
    for (const BlameTrial& trial : trials) items.push_back(table_.of(*trial.point));
    early_ = Inquiry(table_, rules, trials, items, false).run(suspects_);
    late_ = Inquiry(table_, rules, trials, items, true).run(suspects_);
    std::sort(suspects_.begin(), suspects_.end(), [](const Suspect& a, const Suspect& b) {
        return a.blame != b.blame ? a.blame > b.blame : a.items < b.items;
    });
}

// P(none of its tuples fails) by the priors, and for each failure, given that somebody in it is guilty, that it is
// somebody whom the point leaves out.
double Blame::log_chance(const Stage& stage, const Items& items) const {
    double sum = 0;
    for (std::size_t a = 0; a < items.size(); ++a) {
        const double* row = stage.innocence.data() + static_cast<std::ptrdiff_t>(items[a]) * table_.count();
        for (std::size_t b = a; b < items.size(); ++b) sum += row[items[b]];
    }
    for (const Failure& failure : stage.failures) {
        double all = failure.rest, outside = 0.5 * failure.rest;
        bool is_touched = false;
        for (const Suspect& suspect : failure.suspects) {
            const double innocent = std::log1p(-suspect.blame);
            all += innocent;
            if (contains(items, suspect.items)) {
                is_touched = true;
            } else {
                outside += innocent;
            }
        }
        if (is_touched) sum += std::log(std::max(std::expm1(outside) / std::expm1(all), kLeastDoubt));
    }
    return sum;
}

double Blame::p_passes(const Point& point) const {
    const Items items = table_.of(point);
    return std::exp(log_chance(early_, items) + log_chance(late_, items));
}

double Blame::p_holds(const Point& point) const {
    return std::exp(log_chance(late_, table_.of(point)));
}

const Suspect* Blame::worst_in(const Point& point, double least) const {
    const Items items = table_.of(point);
    for (const Suspect& suspect : suspects_) {
        if (suspect.blame < least) break;
        if (contains(items, suspect.items)) return &suspect;
    }
    return nullptr;
}

}  // namespace infrarsi
