#pragma once
// The `knobs` and `constraints` of infrarsi.yaml. Internal to core/contract.

#include "core/contract/contract.h"
#include "core/contract/yaml_reader.h"

namespace infrarsi {

[[nodiscard]] std::vector<Knob> read_knobs(Problems& problems, const Field& field);

// Reads the list, then holds it against the contract's knobs: names, satisfiability, the reference. Batch conservation
// is checked with it. `contract` has everything but its constraints.
[[nodiscard]] std::vector<std::string> read_constraints(Problems& problems, const Field& field,
                                                        const Contract& contract);

}  // namespace infrarsi
