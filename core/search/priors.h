#pragma once
// What is believed of a setting before anything is measured: gain in log units and GiB, from its mechanism alone. These
// are rules, not measurements. They are pessimistic on purpose: means are well under what the literature reports, so
// that ordering comes from them and conclusions do not; widths obey σ0 ≥ max(σ_min, 0.5·|μ0|, 0.3 × share of the phases
// touched), so that no rule can veto a setting (paper §4.2, notes on statistics §9).

#include <array>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/search/history.h"

namespace infrarsi {

// Bits of the phases that a lever works on; 0 is unknown.
enum Phase : unsigned {
    kForward = 1U,
    kBackward = 2U,
    kOptimizer = 4U,
    kData = 8U,
    kOther = 16U  // collectives, host gaps
};

struct SettingPrior {
    double log_gain = 0, sigma = 0.1;  // of the setting against the reference
    double gib = 0, gib_sigma = 1;     // of peak memory per device
    unsigned phases = 0;
};

// What the rules scale with. `memory_gib` is the reference's peak (the capacity where that is unknown, 1 where both
// are).
struct PriorScale {
    double memory_gib = 1;
    PhaseShares phases;
};

[[nodiscard]] PriorScale prior_scale(const SearchProblem& problem);

// `value` is one of the knob's, not the reference.
[[nodiscard]] SettingPrior setting_prior(const Knob& knob, const Value& value, const PriorScale& scale);

// Of a patch, from where it comes: a user's is trusted most, a model's least.
[[nodiscard]] SettingPrior patch_prior(const Patch& patch, const PriorScale& scale);
[[nodiscard]] bool is_user_patch(const Patch& patch);

// Shares in the order of the phase bits; empty when not known.
[[nodiscard]] std::vector<double> share_table(const PhaseShares& shares);

// Short mechanism names in their canonical spelling: micro_batch → batch.micro_batch.
[[nodiscard]] std::string canonical_mechanism(const std::string& mechanism);

// How strongly a value switches its mechanism on, 0 … 1: false, null, 0, "none", "eager" are 0, "selective" is 0.5.
[[nodiscard]] double switch_level(const Value& value);

}  // namespace infrarsi
