#pragma once
// One run of the trial agent (adapters/README.md): its spec, its start, and the wait for its end. Internal to trial.

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/exec/target.h"
#include "core/trial/run_trial.h"
#include "core/trial/sandbox.h"

namespace infrarsi {

struct HookSpec {
    std::string nonce;
    std::vector<int> state_at;
    int audit_at = 0;  // 0: none
    std::vector<std::string> env_keys;
};

struct AgentSpec {
    std::string command;  // for bash -c
    std::filesystem::path cwd, out;
    std::map<std::string, std::string> env;
    std::optional<int> updates;
    double timeout_s = 0, silence_s = 0;
    std::optional<double> memory_cap_gib;
    std::optional<HookSpec> hook;
    SandboxPlan sandbox;
};

// Writes `out`/spec.json (mode 0600) and starts the agent, its own output in `out`/agent.log. The environment of the
// agent holds only what Python needs, since a job outside a sandbox can read it.
[[nodiscard]] Expected<ProcessId> start_agent(const AgentSpec& spec, const TrialSetup& setup, ExecTarget& target);

// The agent that `out`/agent.pid names; nothing when there is none yet.
[[nodiscard]] std::optional<ProcessId> recorded_agent(const std::filesystem::path& out);

enum class AgentEnd { finished, cancelled, died };

struct AgentWait {
    ExecTarget& target;
    Clock& clock;
    std::stop_token stop;
    const std::function<void(const TrialProgress&)>& progress;
};

// Waits until agent.json is there (finished), the agent is gone without it (died), or `stop` was requested and the
// agent has ended the job or was killed after 10 s (cancelled). Returns only after the agent itself is gone, at most 5
// s later.
[[nodiscard]] AgentEnd wait_for_agent(const ProcessId& agent, const std::filesystem::path& out, const AgentWait& wait);

// The last lines that the agent itself wrote, for an error; empty when it said nothing.
[[nodiscard]] std::string agent_last_words(const std::filesystem::path& out);

}  // namespace infrarsi
