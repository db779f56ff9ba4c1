#include "core/simulate/proposer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace infrarsi::sim {

namespace {

constexpr int kMostDraws = 400;
constexpr double kCloseEnough = 0.015;  // of the rank correlation to its target
constexpr std::array<std::string_view, 3> kSupports = {"plain", "feedback", "checked"};

double time_of(const Workload& workload, const Candidate& candidate) {
    double sum = 0;
    for (const double phase : truth(workload, candidate).phases) sum += phase;
    return sum;
}

// The reference with what the atom needs, and with the atom too.
struct Step {
    Candidate before, after;
};

Step step_of(const Workload& workload, const Atom& atom) {
    Step step{reference_candidate(workload), {}};
    if (atom.patch) {
        for (const Setting& setting : workload.patches[static_cast<std::size_t>(*atom.patch)].requirements) {
            step.before.values[static_cast<std::size_t>(setting.knob)] = setting.value;
        }
    }
    step.after = step.before;
    if (atom.patch) step.after.add_patch(*atom.patch);
    if (atom.setting) step.after.values[static_cast<std::size_t>(atom.setting->knob)] = atom.setting->value;
    return step;
}

std::vector<int> ascending(const std::vector<double>& values) {
    std::vector<int> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
        const double left = values[static_cast<std::size_t>(a)];
        const double right = values[static_cast<std::size_t>(b)];
        return left != right ? left < right : a < b;
    });
    return order;
}

std::vector<int> ranks_of(const std::vector<double>& values) {
    std::vector<int> ranks(values.size());
    const std::vector<int> order = ascending(values);
    for (std::size_t i = 0; i < order.size(); ++i) ranks[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    return ranks;
}

double spearman(const std::vector<int>& a, const std::vector<int>& b) {
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += static_cast<double>(a[i] - b[i]) * (a[i] - b[i]);
    const auto n = static_cast<double>(a.size());
    return 1 - 6 * squares / (n * (n * n - 1));
}

struct RankDraw {
    std::vector<int> ranks;
    double spearman = 0;
};

// Ranks whose correlation with `truth_ranks` is as near to `target` as 400 draws get it.
RankDraw draw_ranks(const std::vector<int>& truth_ranks, double target, RandomStream& stream) {
    const auto n = static_cast<double>(truth_ranks.size());
    const double rho = 2 * std::sin(std::numbers::pi * target / 6);
    const double rest = std::sqrt(std::max(0.0, 1 - rho * rho));
    RankDraw best;
    double best_miss = INFINITY;
    std::vector<double> q(truth_ranks.size());
    for (int draw = 0; draw < kMostDraws && best_miss >= kCloseEnough; ++draw) {
        for (std::size_t i = 0; i < q.size(); ++i) {
            q[i] = rho * normal_quantile((truth_ranks[i] + 0.5) / n) + rest * stream.normal();
        }
        std::vector<int> ranks = ranks_of(q);
        const double found = spearman(truth_ranks, ranks);
        if (std::abs(found - target) < best_miss) {
            best_miss = std::abs(found - target);
            best = {std::move(ranks), found};
        }
    }
    return best;
}

void draw_prior(const Workload& workload, std::uint64_t seed, Beliefs& beliefs) {
    const PriorRules& rules = workload.prior;
    std::vector<Atom>& atoms = beliefs.atoms;
    if (rules.is_flat || atoms.size() < 2) {
        for (Atom& atom : atoms) atom.prior_log_gain = rules.mean;
        return;
    }
    RandomStream stream({workload.name, std::to_string(seed), "prior"});
    std::vector<double> truths;
    for (const Atom& atom : atoms) truths.push_back(true_log_gain(workload, atom) + 1e-6 * stream.normal());
    const double target = rules.spearman_low + (rules.spearman_high - rules.spearman_low) * stream.uniform();
    const RankDraw draw = draw_ranks(ranks_of(truths), target, stream);
    std::vector<double> values;
    for (std::size_t i = 0; i < atoms.size(); ++i) values.push_back(rules.mean + rules.sd * stream.normal());
    std::sort(values.begin(), values.end());
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        atoms[i].prior_log_gain = values[static_cast<std::size_t>(draw.ranks[i])];
    }
    beliefs.target_spearman = target;
    beliefs.spearman = draw.spearman;
}

}  // namespace

std::vector<Atom> list_atoms(const Workload& workload) {
    std::vector<Atom> atoms;
    for (std::size_t k = 0; k < workload.knobs.size(); ++k) {
        const Knob& knob = workload.knobs[k];
        for (std::size_t v = 0; v < knob.values.size(); ++v) {
            if (static_cast<int>(v) == knob.reference) continue;
            Atom atom;
            atom.setting = Setting{static_cast<int>(k), static_cast<int>(v)};
            atom.name = knob.values[v].text;
            atoms.push_back(std::move(atom));
        }
    }
    for (std::size_t i = 0; i < workload.patches.size(); ++i) {
        Atom atom;
        atom.patch = static_cast<int>(i);
        atom.name = workload.patches[i].id;
        atoms.push_back(std::move(atom));
    }
    return atoms;
}

double true_log_gain(const Workload& workload, const Atom& atom) {
    const Step step = step_of(workload, atom);
    return std::log(time_of(workload, step.before) / time_of(workload, step.after));
}

double true_memory_change(const Workload& workload, const Atom& atom) {
    Candidate after = reference_candidate(workload);
    const double before = truth(workload, after).memory_gib;
    if (atom.patch) after.add_patch(*atom.patch);
    if (atom.setting) after.values[static_cast<std::size_t>(atom.setting->knob)] = atom.setting->value;
    return truth(workload, after).memory_gib - before;
}

Beliefs draw_beliefs(const Workload& workload, std::uint64_t seed) {
    Beliefs beliefs;
    beliefs.atoms = list_atoms(workload);
    draw_prior(workload, seed, beliefs);
    RandomStream declared({workload.name, std::to_string(seed), "declared"});
    for (Atom& atom : beliefs.atoms) {
        const double u = declared.uniform();
        atom.declared_gib = true_memory_change(workload, atom) * (0.6 + 0.6 * u) + declared.normal();
        for (const PriorRules::Override& each : workload.prior.overrides) {
            if (atom.setting != each.setting) continue;
            atom.prior_log_gain = each.log_gain;
            atom.is_blind = true;
        }
    }
    return beliefs;
}

std::string_view to_string(Support support) {
    return kSupports[static_cast<std::size_t>(support)];
}

std::optional<Support> support_from(std::string_view name) {
    const auto found = std::find(kSupports.begin(), kSupports.end(), name);
    if (found == kSupports.end()) return std::nullopt;
    return static_cast<Support>(found - kSupports.begin());
}

double attempt_luck(const Workload& workload, std::uint64_t seed, int patch, int attempt) {
    const std::string& id = workload.patches[static_cast<std::size_t>(patch)].id;
    return RandomStream({workload.name, std::to_string(seed), "patch", id, std::to_string(attempt)}).uniform();
}

double attempt_chance(const Patch& patch, int attempt, Support support) {
    static constexpr std::array<double, 3> kGain = {0, 0.10, 0.25};  // an attempt more, by support
    return std::min(0.98, patch.success + kGain[static_cast<std::size_t>(support)] * (attempt - 1));
}

bool attempt_works(const Workload& workload, std::uint64_t seed, int patch, int attempt, Support support) {
    const Patch& subject = workload.patches[static_cast<std::size_t>(patch)];
    return attempt_luck(workload, seed, patch, attempt) < attempt_chance(subject, attempt, support);
}

}  // namespace infrarsi::sim
