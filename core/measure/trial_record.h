#pragma once
// From what the agent wrote (adapters/README.md) to the measured part of a receipt: update series over ranks, model,
// probes, audit, memory, failures. Reads files only; never runs anything.

#include <filesystem>

#include "core/contract/contract.h"
#include "core/trial/receipt.h"

namespace infrarsi {

// Fills execution, isolation, series, model, probes, audit, memory, oom, failures, effective, ineffective and disturbed
// of `receipt` from the files in `trial_dir`; `requested` are the complete settings of the candidate. Jobs without the
// hook get their series from their own log lines. not_found when agent.json is missing, corrupt (with the line) when a
// file does not parse.
[[nodiscard]] Expected<void> read_trial_record(const std::filesystem::path& trial_dir, const Contract& contract,
                                               const Settings& requested, Receipt& receipt);

}  // namespace infrarsi
