#pragma once
// infrarsi simulate: a simulated training job over standard input and output, for optimizers that are not ours.

#include <nlohmann/json_fwd.hpp>

#include "core/simulate/simulator.h"

namespace infrarsi {

enum class ShowTruth { no, yes };

// The answer to one line. A line that is no request is answered with why, and uses up no index.
[[nodiscard]] nlohmann::json answer_line(sim::Simulator& simulator, std::string_view line, ShowTruth show_truth);

// What a strategy may know before any trial: knobs, patches, capacity, and the beliefs of a simulated agent.
[[nodiscard]] nlohmann::json prior_json(const sim::Workload& workload, std::uint64_t seed);

// The best that can be delivered, with patches and without; null where nothing can.
[[nodiscard]] nlohmann::json oracle_json(const sim::Workload& workload);

}  // namespace infrarsi
