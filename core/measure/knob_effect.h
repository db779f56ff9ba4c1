#pragma once
// Requested against effective: what each knob really held in the running job, where the hook could see it (DESIGN
// §7.1). A setting that did not take effect is a finding, never a measurement.

#include <optional>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/measure/hook_series.h"

namespace infrarsi {

struct KnobEffect {
    Settings effective;                    // only knobs that could be seen
    std::vector<std::string> ineffective;  // "micro_batch: requested 32, effective 16"
};

// `requested` holds a value for every knob. Without a message nothing is known.
[[nodiscard]] KnobEffect knob_effect(const Contract& contract, const Settings& requested,
                                     const std::optional<KnobMessage>& message);

}  // namespace infrarsi
