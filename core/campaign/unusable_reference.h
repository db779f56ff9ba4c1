#pragma once
// Why a run of the unchanged job cannot serve as the reference, and the way out, in a sentence. Part of doctor.

#include "core/base/error.h"
#include "core/campaign/state.h"
#include "core/trial/run_trial.h"

namespace infrarsi {

// `setup` gives the limits that held and the folder of the logs. The error is `unsupported`.
[[nodiscard]] Error unusable_reference(const TrialRecord& trial, const Receipt& receipt, const TrialSetup& setup);

}  // namespace infrarsi
