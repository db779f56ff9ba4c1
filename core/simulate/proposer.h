#pragma once
// The simulated proposer: what a language model and a coding agent would believe and manage on a simulated job, so that
// strategies can be compared without one. Beliefs are drawn once a campaign from streams of their own; they carry the
// workload's rank correlation with the truth, which for large models is close to none. Source: SIMULATOR.md §7.

#include "core/simulate/random_stream.h"
#include "core/simulate/truth.h"

namespace infrarsi::sim {

// One value of a knob that is not the reference, or one patch.
struct Atom {
    std::optional<Setting> setting;
    std::optional<int> patch;  // exactly one of the two
    std::string name;          // `knob=value` as in a candidate's key, or the patch's id

    double prior_log_gain = 0;  // what the agent believes
    bool is_blind = false;      // even an agent that knows the field sees only the prior
    double declared_gib = 0;    // what it says the atom adds to memory
};

// In the file's order, knobs first; beliefs unset.
[[nodiscard]] std::vector<Atom> list_atoms(const Workload& workload);

// ln of the speed-up of the atom alone at the reference; of a patch with requirements, where these hold. Without the
// slow zone, conflicts and the capacity. For scoring and simulated judgement, never for a strategy.
[[nodiscard]] double true_log_gain(const Workload& workload, const Atom& atom);
// GiB that the atom alone adds at the reference.
[[nodiscard]] double true_memory_change(const Workload& workload, const Atom& atom);

struct Beliefs {
    std::vector<Atom> atoms;
    // Rank correlation that was aimed at and the one that was found, both before overrides; nothing for a flat prior.
    std::optional<double> target_spearman, spearman;
};

// Deterministic in (workload.name, workload, seed). Sorts up to 400 draws: under a millisecond.
[[nodiscard]] Beliefs draw_beliefs(const Workload& workload, std::uint64_t seed);

// How an attempt at a patch is helped.
enum class Support {
    plain,
    feedback,  // the agent sees its error
    checked    // debate, patch checker, error feedback
};
[[nodiscard]] std::string_view to_string(Support support);
[[nodiscard]] std::optional<Support> support_from(std::string_view name);

// The luck of attempt number `attempt` (from 1) of this campaign; the attempt works where it is below the chance.
[[nodiscard]] double attempt_luck(const Workload& workload, std::uint64_t seed, int patch, int attempt);
[[nodiscard]] double attempt_chance(const Patch& patch, int attempt, Support support);
[[nodiscard]] bool attempt_works(const Workload& workload, std::uint64_t seed, int patch, int attempt, Support support);

}  // namespace infrarsi::sim
