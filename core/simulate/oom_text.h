#pragma once
// PyTorch's words where a device is out of memory, with numbers that make what the process has and what it tried to get
// a true lower bound of what the candidate needs. Source: SIMULATOR.md §4.4.

#include <string>

#include "core/simulate/random_stream.h"
#include "core/simulate/workload.h"

namespace infrarsi::sim {

// `memory_gib` is what the candidate needs, more than the capacity. `luck` is the stream `oom`.
[[nodiscard]] std::string out_of_memory_text(const Workload& workload, double memory_gib, RandomStream& luck);

}  // namespace infrarsi::sim
