#pragma once
// The best that can be delivered on a simulated job: what strategies are scored against, never shown to one.
// Source: SIMULATOR.md §6 (oracle), §11.

#include "core/simulate/truth.h"

namespace infrarsi::sim {

enum class Levers { knobs, knobs_and_patches };

struct Optimum {
    Candidate candidate;
    double speedup = 1;
    double memory_gib = 0;
    std::int64_t nodes = 0;  // how much was searched
};

// The fastest candidate whose kind is ok, over all settings and, with patches, all subsets of those that are no hacks;
// exact to the last digits. Nothing where no candidate can be delivered. Branch and bound: hundreds of nodes on the
// shipped workloads; exponential in the settings that trade time against memory at worst.
[[nodiscard]] std::optional<Optimum> find_optimum(const Workload& workload, Levers levers);

}  // namespace infrarsi::sim
