#pragma once
// Does the loss rule have power on this job? (DESIGN §7.2, notes/statistics.md §8.) The smallest sabotage that the rule
// would accept, estimated from the reference's own loss curve.

#include "core/verify/verdict.h"

namespace infrarsi {

struct LossPower {
    bool accepts_no_update = false;  // a model that never learns would pass
    bool accepts_half_rate = false;  // one that learns at half the speed would pass
    double tolerance = 0;            // relative, as the rule would apply it
    double learned = 0;              // relative loss change from the first update to the window's mean
    std::string sentence;            // for doctor and the report
};

[[nodiscard]] LossPower loss_power(const ReferenceEvidence& reference, const InvariantRules& rules);

}  // namespace infrarsi
