#include "core/simulate/oracle.h"

#include <algorithm>
#include <limits>
#include <set>

namespace infrarsi::sim {

namespace {

constexpr double kTie = 1e-12;  // relative; rounding must not cut off the optimum

// What is chosen from: a value of a knob, or a patch being absent (0) or present (1).
struct Option {
    int choice = 0;
    PerPhase phases = kNoEffect;  // of a patch, an upper end of what it does in the best of settings
    double memory_gib = 0;
    double activation_factor = 1;
};

struct Lever {
    bool is_patch = false;
    int index = 0;
    std::vector<Option> options;  // promising ones first
    int group = 0;                // earlier groups are chosen first
    double spread = 0;            // how much hangs on the choice: large ones first
};

bool is_no_worse(const Option& a, const Option& b) {
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
        if (a.phases[p] > b.phases[p]) return false;
    }
    return a.memory_gib <= b.memory_gib && a.activation_factor <= b.activation_factor;
}

double weighted(const Workload& workload, const Option& option) {
    double sum = 0;
    for (std::size_t p = 0; p < kPhaseCount; ++p) sum += workload.shares[p] * option.phases[p];
    return sum;
}

// Settings that some rule names: such a value cannot be judged by its own numbers alone.
std::set<std::pair<int, int>> named_settings(const Workload& workload) {
    std::set<std::pair<int, int>> named;
    const auto add = [&](const Condition& condition) {
        for (const Setting& setting : condition) named.emplace(setting.knob, setting.value);
    };
    for (const Conflict& conflict : workload.conflicts) add(conflict.when);
    for (const Interaction& interaction : workload.interactions) add(interaction.when);
    for (const Patch& patch : workload.patches) {
        add(patch.requirements);
        for (const Attenuation& attenuation : patch.attenuations) add(attenuation.when);
    }
    return named;
}

// Legal values, without those that another one beats in every respect.
Lever knob_lever(const Workload& workload, int index, const std::set<std::pair<int, int>>& named) {
    Lever lever{.is_patch = false, .index = index};
    const Knob& knob = workload.knobs[static_cast<std::size_t>(index)];
    std::vector<Option> all;
    for (std::size_t v = 0; v < knob.values.size(); ++v) {
        const KnobValue& value = knob.values[v];
        if (!value.is_legal) continue;
        all.push_back({static_cast<int>(v), value.phases, value.memory_gib, value.activation_factor});
    }
    for (const Option& option : all) {
        const bool is_beaten =
            !named.contains({index, option.choice}) && std::any_of(all.begin(), all.end(), [&](const Option& other) {
                return other.choice != option.choice && !named.contains({index, other.choice}) &&
                       is_no_worse(other, option) && (!is_no_worse(option, other) || other.choice < option.choice);
            });
        if (!is_beaten) lever.options.push_back(option);
    }
    return lever;
}

// A patch that can only help is always there, one that can only harm never. Exponents keep a factor on its side of 1.
Lever patch_lever(const Workload& workload, int index) {
    const Patch& patch = workload.patches[static_cast<std::size_t>(index)];
    double strongest = 1;
    for (const Attenuation& attenuation : patch.attenuations) strongest *= std::max(1.0, attenuation.exponent);
    Option present{1, kNoEffect, patch.memory_gib, 1};
    bool only_helps = patch.memory_gib <= 0;
    bool only_harms = patch.memory_gib >= 0;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
        present.phases[p] = std::min(1.0, std::pow(patch.phases[p], strongest));
        only_helps = only_helps && patch.phases[p] <= 1;
        only_harms = only_harms && patch.phases[p] >= 1;
    }
    Lever lever{.is_patch = true, .index = index};
    if (!only_harms || only_helps) lever.options.push_back(present);
    if (!only_helps) lever.options.push_back({0, kNoEffect, 0, 1});
    return lever;
}

void rank(const Workload& workload, int group, Lever& lever) {
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const Option& option : lever.options) {
        const double gib = option.memory_gib + workload.memory.activation_gib * (option.activation_factor - 1);
        const double weight = weighted(workload, option) + std::abs(gib) / workload.device.capacity_gib;
        low = std::min(low, weight);
        high = std::max(high, weight);
    }
    lever.group = group;
    lever.spread = high - low;
    std::sort(lever.options.begin(), lever.options.end(),
              [&](const Option& a, const Option& b) { return weighted(workload, a) < weighted(workload, b); });
}

// Knobs that patches depend on, then the patches, whose effect is then known, then the other knobs; in each group those
// that move most first, so that bounds bite early.
std::vector<Lever> order_levers(const Workload& workload, Levers which) {
    std::set<int> first;
    for (const Patch& patch : workload.patches) {
        for (const Setting& setting : patch.requirements) first.insert(setting.knob);
        for (const Attenuation& attenuation : patch.attenuations) {
            for (const Setting& setting : attenuation.when) first.insert(setting.knob);
        }
    }
    const auto named = named_settings(workload);
    std::vector<Lever> levers;
    for (std::size_t k = 0; k < workload.knobs.size(); ++k) {
        const int knob = static_cast<int>(k);
        rank(workload, first.contains(knob) ? 0 : 2, levers.emplace_back(knob_lever(workload, knob, named)));
    }
    for (std::size_t i = 0; which == Levers::knobs_and_patches && i < workload.patches.size(); ++i) {
        if (workload.patches[i].is_hack) continue;
        rank(workload, 1, levers.emplace_back(patch_lever(workload, static_cast<int>(i))));
    }
    std::sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) {
        return std::tuple(a.group, -a.spread, a.index) < std::tuple(b.group, -b.spread, b.index);
    });
    return levers;
}

// Everything that is known of a candidate whose first levers are chosen.
struct Partial {
    PerPhase phases{};
    double memory_gib = 0;
    double activation_gib = 0;
};

class Search {
public:
    Search(const Workload& workload, std::vector<Lever> levers)
        : workload_(workload), levers_(std::move(levers)), current_(reference_candidate(workload)) {
        place_rules();
        bound_rest();
    }

    std::optional<Optimum> run() {
        descend(0, {workload_.shares, workload_.memory.base_gib, workload_.memory.activation_gib});
        if (best_) best_->nodes = nodes_;
        return best_;
    }

private:
    // The best that the levers from a depth on can do, each phase and memory taken alone.
    struct Rest {
        PerPhase phases = kNoEffect;
        double memory_gib = 0;
        double activation_factor = 1;
    };

    // A rule is looked at once its last knob is chosen.
    [[nodiscard]] std::size_t depth_of(const Condition& condition) const {
        std::size_t depth = 0;
        for (std::size_t d = 0; d < levers_.size(); ++d) {
            for (const Setting& setting : condition) {
                if (!levers_[d].is_patch && levers_[d].index == setting.knob) depth = std::max(depth, d);
            }
        }
        return depth;
    }

    void place_rules() {
        conflicts_at_.resize(levers_.size());
        interactions_at_.resize(levers_.size());
        for (const Conflict& conflict : workload_.conflicts) {
            conflicts_at_[depth_of(conflict.when)].push_back(&conflict.when);
        }
        for (const Interaction& interaction : workload_.interactions) {
            interactions_at_[depth_of(interaction.when)].push_back(&interaction);
        }
    }

    void bound_rest() {
        rest_.resize(levers_.size() + 1);
        for (std::size_t d = levers_.size(); d-- > 0;) {
            Rest rest = rest_[d + 1];
            Rest least = {levers_[d].options.front().phases, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::infinity()};
            for (const Option& option : levers_[d].options) {
                for (std::size_t p = 0; p < kPhaseCount; ++p) {
                    least.phases[p] = std::min(least.phases[p], option.phases[p]);
                }
                least.memory_gib = std::min(least.memory_gib, option.memory_gib);
                least.activation_factor = std::min(least.activation_factor, option.activation_factor);
            }
            rest.memory_gib += least.memory_gib;
            rest.activation_factor *= least.activation_factor;
            for (std::size_t p = 0; p < kPhaseCount; ++p) rest.phases[p] *= least.phases[p];
            for (const Interaction* interaction : interactions_at_[d]) {
                rest.memory_gib += std::min(0.0, interaction->memory_gib);
                for (std::size_t p = 0; p < kPhaseCount; ++p) {
                    rest.phases[p] *= std::min(1.0, interaction->phases[p]);
                }
            }
            rest_[d] = rest;
        }
    }

    [[nodiscard]] bool is_hopeless(std::size_t depth, const Partial& partial) const {
        const Rest& rest = rest_[depth];
        const double memory_gib =
            partial.memory_gib + rest.memory_gib + partial.activation_gib * rest.activation_factor;
        if (memory_gib > workload_.device.capacity_gib * (1 + kTie)) return true;
        if (!best_) return false;
        double time = 0;
        for (std::size_t p = 0; p < kPhaseCount; ++p) time += partial.phases[p] * rest.phases[p];
        return time * best_->speedup > 1 + kTie;
    }

    [[nodiscard]] static bool any_holds(const std::vector<const Condition*>& rules, const Candidate& candidate) {
        return std::any_of(rules.begin(), rules.end(),
                           [&](const Condition* condition) { return holds(*condition, candidate); });
    }

    [[nodiscard]] Partial choose(const Lever& lever, const Option& option, Partial partial) {
        partial.memory_gib += option.memory_gib;
        partial.activation_gib *= option.activation_factor;
        PerPhase factors = option.phases;
        if (lever.is_patch) {
            current_.patches &= ~(std::uint64_t{1} << lever.index);
            if (option.choice == 0) return partial;
            current_.add_patch(lever.index);
            factors = patch_factors(workload_.patches[static_cast<std::size_t>(lever.index)], current_);
        } else {
            current_.values[static_cast<std::size_t>(lever.index)] = option.choice;
        }
        for (std::size_t p = 0; p < kPhaseCount; ++p) partial.phases[p] *= factors[p];
        return partial;
    }

    void descend(std::size_t depth, const Partial& partial) {
        ++nodes_;
        if (is_hopeless(depth, partial)) return;
        if (depth == levers_.size()) {
            consider();
            return;
        }
        const Lever& lever = levers_[depth];
        for (const Option& option : lever.options) {
            Partial next = choose(lever, option, partial);
            if (any_holds(conflicts_at_[depth], current_)) continue;
            for (const Interaction* interaction : interactions_at_[depth]) {
                if (!holds(interaction->when, current_)) continue;
                next.memory_gib += interaction->memory_gib;
                for (std::size_t p = 0; p < kPhaseCount; ++p) next.phases[p] *= interaction->phases[p];
            }
            descend(depth + 1, next);
        }
    }

    void consider() {
        const Truth found = truth(workload_, current_);
        if (found.kind != Kind::ok) return;
        const double speedup = 1 / found.rel_time;
        if (best_ && speedup <= best_->speedup) return;
        best_ = Optimum{current_, speedup, found.memory_gib, 0};
    }

    const Workload& workload_;
    std::vector<Lever> levers_;
    std::vector<std::vector<const Condition*>> conflicts_at_;
    std::vector<std::vector<const Interaction*>> interactions_at_;
    std::vector<Rest> rest_;
    Candidate current_;
    std::optional<Optimum> best_;
    std::int64_t nodes_ = 0;
};

}  // namespace

std::optional<Optimum> find_optimum(const Workload& workload, Levers levers) {
    return Search(workload, order_levers(workload, levers)).run();
}

}  // namespace infrarsi::sim
