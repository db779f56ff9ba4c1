#pragma once
// One trial: materialise, start the agent, wait, read its record, sign the receipt. Signing happens here, in the
// parent; the key never reaches the agent or the job.

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "core/base/env.h"
#include "core/exec/target.h"
#include "core/trial/materialise.h"
#include "core/trial/receipt.h"

namespace infrarsi {

// What all trials of a campaign share.
struct TrialSetup {
    const Contract* contract = nullptr;
    Snapshot snapshot;
    std::string campaign;                // run id
    std::string nonce;                   // of the campaign's state checks: equal for reference and candidates
    std::vector<int> state_at;           // updates whose state is compared; never shown to a job in advance
    int audit_at = 0;                    // 0: none
    std::filesystem::path adapters_dir;  // agent and hook
    std::filesystem::path trials_dir;
    std::filesystem::path key_dir;                  // hidden from trials
    std::map<std::string, std::string> parent_env;  // the environment of the runner, to be filtered by the allow-list
    double timeout_s = 3600, silence_s = 600;
    std::optional<double> memory_cap_gib;
    bool keep_tree = false;
};

struct TrialRequest {
    std::string id;  // folder name under trials_dir
    std::string role;
    Candidate candidate;
};

struct TrialProgress {
    int updates = 0;
    double elapsed_s = 0;
};

// Runs to the end and returns the receipt, also written signed to <trial>/receipt.json. A trial folder that already
// holds a running or finished agent (a runner died) is adopted instead of started again. Errors are only those of the
// harness (io, resource, frozen, conflict, invalid_input); a job that fails is a receipt that says so. cancelled when
// `stop` was requested: the job's group is killed first.
[[nodiscard]] Expected<Receipt> run_trial(const TrialSetup& setup, const TrialRequest& request, ExecTarget& target,
                                          Clock& clock, std::string_view key, std::stop_token stop,
                                          const std::function<void(const TrialProgress&)>& progress);

// The environment of a trial: the standard allow-list (PATH, HOME, LANG, LC_*, TMPDIR, CUDA_*, NCCL_*, OMP_*, …), the
// contract's env_allow and launch.env. Names that look like secrets (KEY, TOKEN, SECRET, PASSWORD) pass only by exact
// name in env_allow.
[[nodiscard]] std::map<std::string, std::string> trial_environment(
    const Contract& contract, const std::map<std::string, std::string>& parent_env);

}  // namespace infrarsi
