// Baselines that stand for a language model with a coding agent: it scores single changes by what it believes and what
// it knows, and keeps what helps.

#include <algorithm>
#include <cmath>

#include "core/bench/baselines.h"

namespace infrarsi::bench {

namespace {

constexpr double kIllegalChance = 0.2;  // that an atom outside the contract is considered in a step
constexpr double kOptionNoise = 0.02;   // when the best of several draws is taken
constexpr double kSaverGib = -1;        // declared change of memory

}  // namespace

class Agent {
public:
    Agent(Rehearsal& rehearsal, const std::string& name, Trust trust, const AgentRules& rules)
        : rehearsal_(rehearsal),
          job_(rehearsal.job()),
          rules_(rules),
          luck_(rehearsal.luck(name)),
          best_(rehearsal, trust),
          tried_(job_.atoms.size(), false),
          failures_(job_.patches.size(), 0) {
        const double weight = rules.judgement * (rules.uses_familiarity ? rehearsal.familiarity(AgentKey()) : 1);
        const std::vector<double> guesses = rehearsal.informed_guesses(AgentKey());
        for (std::size_t i = 0; i < job_.atoms.size(); ++i) {
            const sim::Atom& atom = job_.atoms[i];
            const double own = atom.is_blind ? 0 : weight;
            scores_.push_back((1 - own) * atom.prior_log_gain + own * guesses[i]);
        }
    }

    Delivery play() {
        for (int step = 0; rehearsal_.may_start() && step < rules_.most_proposals.value_or(INT_MAX); ++step) {
            const std::vector<std::size_t> change = propose();
            if (change.empty()) break;
            try_out(change);
        }
        return best_.deliver();
    }

private:
    [[nodiscard]] bool holds(std::size_t atom) const {
        const sim::Atom& each = job_.atoms[atom];
        if (each.patch) return best_.candidate().has_patch(*each.patch);
        return best_.candidate().values[static_cast<std::size_t>(each.setting->knob)] == each.setting->value;
    }

    [[nodiscard]] bool same_knob(std::size_t a, std::size_t b) const {
        const auto &one = job_.atoms[a].setting, &other = job_.atoms[b].setting;
        return a == b || (one && other && one->knob == other->knob);
    }

    bool is_available(std::size_t atom) {
        const sim::Atom& each = job_.atoms[atom];
        if (holds(atom) || (rules_.knobs_only && each.patch)) return false;
        if (each.patch && !rehearsal_.may_attempt(*each.patch)) return false;
        if (tried_[atom] && luck_.uniform() >= rules_.repeat) return false;
        return job_.is_legal(each) || luck_.uniform() < kIllegalChance;
    }

    std::vector<std::size_t> available() {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < job_.atoms.size(); ++i) {
            if (is_available(i)) found.push_back(i);
        }
        return found;
    }

    std::size_t draw(const std::vector<std::size_t>& from) {
        const double uniform = luck_.uniform();
        if (luck_.uniform() < rules_.stray) {
            return from[static_cast<std::size_t>(uniform * static_cast<double>(from.size()))];
        }
        double highest = -HUGE_VAL, sum = 0;
        for (const std::size_t atom : from) highest = std::max(highest, scores_[atom]);
        std::vector<double> weights;
        for (const std::size_t atom : from) {
            weights.push_back(std::exp((scores_[atom] - highest) / rules_.temperature));
            sum += weights.back();
        }
        double left = uniform * sum;
        for (std::size_t i = 0; i + 1 < from.size(); ++i) {
            left -= weights[i];
            if (left < 0) return from[i];
        }
        return from.back();
    }

    std::size_t pick(const std::vector<std::size_t>& from) {
        std::size_t best = from.front();
        double best_score = -HUGE_VAL;
        for (int option = 0; option < rules_.options; ++option) {
            const std::size_t atom = draw(from);
            const double score = scores_[atom] + kOptionNoise * luck_.normal();
            if (score <= best_score) continue;
            best_score = score;
            best = atom;
        }
        return best;
    }

    // A legal setting of another knob that is said to save memory.
    std::optional<std::size_t> random_saver(std::size_t atom) {
        std::vector<std::size_t> savers;
        for (std::size_t i = 0; i < job_.atoms.size(); ++i) {
            const sim::Atom& each = job_.atoms[i];
            if (each.setting && each.declared_gib < kSaverGib && job_.is_legal(each) && !holds(i) &&
                !same_knob(i, atom)) {
                savers.push_back(i);
            }
        }
        if (savers.empty()) return std::nullopt;
        return savers[static_cast<std::size_t>(luck_.uniform() * static_cast<double>(savers.size()))];
    }

    // Atoms to add to the incumbent; the first is what the step is about.
    std::vector<std::size_t> propose() {
        if (out_of_memory_ && luck_.uniform() < rules_.pair) {
            if (const auto saver = random_saver(*out_of_memory_)) return {*out_of_memory_, *saver};
        }
        std::vector<std::size_t> from = available();
        if (from.empty()) {
            std::fill(tried_.begin(), tried_.end(), false);
            from = available();
        }
        if (from.empty()) return {};
        const std::size_t first = pick(from);
        if (luck_.uniform() >= rules_.two) return {first};
        std::erase_if(from, [&](std::size_t atom) { return same_knob(atom, first); });
        if (from.empty()) return {first};
        return {first, pick(from)};
    }

    void try_out(const std::vector<std::size_t>& change) {
        TrialPlan plan{best_.candidate(), rules_.support, {}};
        for (const std::size_t atom : change) {
            const sim::Atom& each = job_.atoms[atom];
            tried_[atom] = true;
            if (each.patch) plan.candidate.add_patch(*each.patch);
            if (each.setting) plan.candidate.values[static_cast<std::size_t>(each.setting->knob)] = each.setting->value;
        }
        const auto trial = rehearsal_.run(plan);
        INFRARSI_CHECK(trial.has_value(), "an agent asks for what is available");
        out_of_memory_ = trial->ran_out_of_memory() ? std::optional(change.front()) : std::nullopt;
        for (const std::size_t atom : change) allow_another_attempt(atom, *trial);
        best_.offer(*trial);
    }

    // A patch that fails once may be picked again.
    void allow_another_attempt(std::size_t atom, const Trial& trial) {
        const auto& patch = job_.atoms[atom].patch;
        const auto& failed = trial.failed_patches;
        if (!patch || std::find(failed.begin(), failed.end(), *patch) == failed.end()) return;
        if (++failures_[static_cast<std::size_t>(*patch)] == 1) tried_[atom] = false;
    }

    Rehearsal& rehearsal_;
    const JobView& job_;
    AgentRules rules_;
    sim::RandomStream luck_;
    BestSoFar best_;
    std::vector<double> scores_;                // by atom
    std::vector<bool> tried_;                   // by atom
    std::vector<int> failures_;                 // by patch
    std::optional<std::size_t> out_of_memory_;  // what the last trial was about, if it did not fit
};

Strategy agent_search(std::string name, Trust trust, const AgentRules& rules) {
    return {name, [name, trust, rules](Rehearsal& rehearsal) { return Agent(rehearsal, name, trust, rules).play(); }};
}

}  // namespace infrarsi::bench
