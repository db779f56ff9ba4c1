#include "core/trial/run_trial.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <fstream>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/measure/trial_record.h"
#include "core/trial/agent_run.h"
#include "core/trial/checks.h"
#include "core/trial/prepared.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

// A runner that was killed between starting the agent and this one's look: the agent writes its pid within this time.
constexpr std::chrono::nanoseconds kAgentAppears = 3s;

class Trial {
public:
    Trial(const TrialSetup& setup, const TrialRequest& request, std::string_view key, const AgentWait& wait)
        : setup_(setup),
          contract_(*setup.contract),
          request_(request),
          key_(key),
          wait_(wait),
          folder_(setup.trials_dir / request.id),
          tree_(folder_ / "tree"),
          scratch_(folder_ / "scratch") {}

    Expected<Receipt> run() {
        INFRARSI_ASSIGN(auto earlier, earlier_receipt());
        if (earlier) return std::move(*earlier);
        // First the job of a dead runner: asked to stop, it must be stopped too, and what it did is charged.
        INFRARSI_ASSIGN(auto agent, adopt());
        if (!agent) {
            if (wait_.stop.stop_requested()) {
                return fail(ErrorKind::cancelled, "stopped before trial {} began", request_.id);
            }
            if (auto prepared = prepare(); !prepared) {
                tidy();
                return Unexpected(std::move(prepared).error());
            }
            auto started = start_agent(main_spec(), setup_, wait_.target);
            if (!started) {
                tidy();
                return Unexpected(std::move(started).error());
            }
            agent = *started;
        }
        return finish(wait_for_agent(*agent, folder_, wait_));
    }

private:
    // Of a runner that died after it had signed. One that was cancelled is run again.
    Expected<std::optional<Receipt>> earlier_receipt() const {
        const fs::path file = folder_ / "receipt.json";
        const auto text = read_file(file);
        if (!text) {
            if (text.error().kind() == ErrorKind::not_found) return std::optional<Receipt>();
            return Unexpected(text.error());
        }
        INFRARSI_ASSIGN(Receipt receipt, open_receipt(*text, key_, file.string()));
        if (receipt.execution.cancelled) return std::optional<Receipt>();
        if (receipt.candidate.signature() != request_.candidate.signature() || receipt.role != request_.role) {
            return fail(ErrorKind::conflict, "trial {} already holds the receipt of another candidate ({}, {})",
                        request_.id, receipt.role, receipt.candidate.describe());
        }
        return std::optional<Receipt>(std::move(receipt));
    }

    // The agent of a runner that died, running or finished; nothing when there is nothing to take over.
    Expected<std::optional<ProcessId>> adopt() {
        const fs::path file = folder_ / "prepared.json";
        std::error_code ignored;
        if (!fs::exists(file, ignored) || fs::exists(folder_ / "receipt.json", ignored))
            return std::optional<ProcessId>();
        INFRARSI_ASSIGN(prepared_, read_prepared(file, key_));
        if (prepared_.signature != request_.candidate.signature() || prepared_.role != request_.role) {
            return fail(ErrorKind::conflict, "trial {} was prepared for another candidate", request_.id);
        }
        const auto end = wait_.clock.monotonic() + kAgentAppears;
        auto agent = recorded_agent(folder_);
        while (!agent && wait_.clock.monotonic() < end) {
            wait_.clock.sleep_for(20ms);
            agent = recorded_agent(folder_);
        }
        return agent;
    }

    Expected<void> prepare() {
        INFRARSI_TRY(remove_tree(folder_));
        INFRARSI_TRY(make_folders(folder_));
        INFRARSI_TRY(write_file(folder_ / "candidate.json", pretty_json(to_json(request_.candidate))));
        INFRARSI_ASSIGN(const Realisation realisation, realise(contract_, setup_.snapshot.dir, request_.candidate));
        INFRARSI_TRY(materialise(setup_.snapshot, contract_, realisation, tree_));
        INFRARSI_ASSIGN(const TreeFacts facts, inspect_tree(contract_, tree_));
        prepared_ = {};
        prepared_.signature = request_.candidate.signature();
        prepared_.role = request_.role;
        prepared_.tree_digest = facts.digest;
        prepared_.command = realisation.command;
        INFRARSI_ASSIGN(prepared_.sandbox,
                        plan_sandbox(contract_.isolation,
                                     {contract_.root, tree_, scratch_, setup_.trials_dir, setup_.key_dir,
                                      setup_.adapters_dir, facts.frozen_mounts, facts.linked},
                                     setup_.parent_env));
        INFRARSI_TRY(make_environment(realisation));
        // Last before the start, so that "written to during the run" means just that.
        prepared_.frozen = stamp_frozen(tree_, facts.frozen);
        return write_prepared(prepared_, folder_ / "prepared.json", key_);
    }

    Expected<void> make_environment(const Realisation& realisation) {
        auto env = trial_environment(contract_, setup_.parent_env);
        for (const auto& [name, value] : realisation.env) env[name] = value;
        const auto set_private = [&](const char* name, const fs::path& path) -> Expected<void> {
            if (contract_.launch.env.count(name) > 0) return {};
            INFRARSI_TRY(make_folders(path));
            env[name] = path.string();
            return {};
        };
        // Compilation caches are private to a trial: a candidate must not leave compiled code to the next one, and all
        // arms then compile equally cold, before the window begins.
        const fs::path cache = scratch_ / "cache";
        INFRARSI_TRY(set_private("TORCHINDUCTOR_CACHE_DIR", cache / "inductor"));
        INFRARSI_TRY(set_private("TRITON_CACHE_DIR", cache / "triton"));
        INFRARSI_TRY(set_private("CUDA_CACHE_PATH", cache / "cuda"));
        INFRARSI_TRY(set_private("TORCH_EXTENSIONS_DIR", cache / "extensions"));
        INFRARSI_TRY(set_private("MPLCONFIGDIR", cache / "matplotlib"));
        INFRARSI_ASSIGN(env["TMPDIR"], private_temp_dir());
        prepared_.env = std::move(env);
        return {};
    }

    // Short, because sockets are made in it whose whole path has 108 bytes. Within bubblewrap /tmp itself is private.
    Expected<std::string> private_temp_dir() {
        INFRARSI_TRY(make_folders(scratch_));
        if (prepared_.sandbox.kind == "bwrap") return std::string("/tmp");
        const auto parent = setup_.parent_env.find("TMPDIR");
        const fs::path base = parent == setup_.parent_env.end() || parent->second.empty() ? "/tmp" : parent->second;
        std::string name = (base / "infrarsi-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            return fail(ErrorKind::io, "cannot make a temporary folder in {}: {}", base.string(), errno_text(errno));
        }
        prepared_.temp_dir = name;
        return name;
    }

    [[nodiscard]] AgentSpec main_spec() const {
        AgentSpec spec;
        spec.command = prepared_.command;
        spec.cwd = (tree_ / contract_.launch.cwd).lexically_normal();
        spec.out = folder_;
        spec.env = prepared_.env;
        spec.updates = contract_.launch.updates;
        spec.timeout_s = setup_.timeout_s;
        spec.silence_s = setup_.silence_s;
        spec.memory_cap_gib = setup_.memory_cap_gib;
        spec.sandbox = prepared_.sandbox;
        HookSpec hook{setup_.nonce, setup_.state_at, setup_.audit_at, {"OMP_NUM_THREADS", "OMP_WAIT_POLICY"}};
        for (const Knob& knob : contract_.knobs) {
            if (knob.kind == KnobKind::env) hook.env_keys.push_back(knob.spelling);
        }
        spec.hook = std::move(hook);
        return spec;
    }

    Expected<Receipt> finish(AgentEnd end) {
        Receipt receipt = blank_receipt();
        read_record(end, receipt);
        receipt.execution.cancelled = receipt.execution.cancelled || end == AgentEnd::cancelled;
        describe_isolation(receipt.isolation);
        if (has_succeeded(receipt.execution)) {
            auto checked = run_checks(setup_, main_spec(), wait_, receipt);
            if (!checked && checked.error().kind() != ErrorKind::cancelled) return Unexpected(checked.error());
            if (!checked) receipt.execution.cancelled = true;
        }
        compare_frozen(receipt);
        receipt.environment = wait_.target.fingerprint();
        add_software(receipt.environment);
        INFRARSI_TRY(write_file(folder_ / "receipt.json", sign_receipt(receipt, key_)));
        tidy();
        if (receipt.execution.cancelled && wait_.stop.stop_requested()) {
            return fail(ErrorKind::cancelled, "trial {} was stopped", request_.id);
        }
        return receipt;
    }

    [[nodiscard]] Receipt blank_receipt() const {
        Receipt receipt;
        receipt.harness = INFRARSI_VERSION;
        receipt.campaign = setup_.campaign;
        receipt.trial = request_.id;
        receipt.role = request_.role;
        receipt.candidate = request_.candidate;
        receipt.contract_digest = contract_digest(contract_);
        receipt.tree_digest = prepared_.tree_digest;
        receipt.updates = contract_.launch.updates;
        receipt.warmup = contract_.launch.warmup;
        return receipt;
    }

    // Whatever the job left is a receipt: what cannot be read is a failure of this trial, not of the campaign.
    void read_record(AgentEnd end, Receipt& receipt) const {
        const auto read =
            read_trial_record(folder_, contract_, contract_.complete(request_.candidate.settings), receipt);
        if (read) return;
        std::string& error = receipt.execution.error;
        if (end == AgentEnd::finished) {
            error = "the record of the trial cannot be read: " + read.error().describe();
        } else if (end == AgentEnd::cancelled) {
            error = "stopped before the trial agent could write its record";
        } else {
            error = "the trial agent died before the job ended";
            if (const std::string words = agent_last_words(folder_); !words.empty()) error += ": " + words;
        }
    }

    void describe_isolation(IsolationHeld& held) const {
        const SandboxPlan& plan = prepared_.sandbox;
        if (held.sandbox.empty()) held.sandbox = plan.kind;
        if (held.network.empty()) held.network = plan.network;
        if (held.sandbox == plan.kind) {
            if (!plan.why.empty()) held.why = plan.why;
        } else {
            held.why +=
                "; frozen files were only write-protected and compared afterwards, and the job could write to "
                "linked data and read this user's other files";
        }
    }

    static bool has_succeeded(const Execution& execution) {
        const bool ended_well = execution.exit_code == 0 || execution.stopped == "after_updates";
        return ended_well && execution.error.empty() && !execution.cancelled && execution.timed_out.empty();
    }

    void compare_frozen(Receipt& receipt) const {
        std::vector<std::string> paths;
        for (const auto& [path, stamp] : prepared_.frozen) paths.push_back(path);
        const FrozenState after = stamp_frozen(tree_, paths, &prepared_.frozen);
        for (const auto& [path, before] : prepared_.frozen) {
            const FileStamp& now = after.at(path);
            receipt.frozen_before[path] = before.digest;
            receipt.frozen_after[path] = now.digest;
            if (!now.same_file_state(before) || was_refused(receipt, path)) receipt.frozen_touched.push_back(path);
        }
    }

    // The job tried to write to a file that the sandbox held read-only: the attempt counts, not its luck.
    static bool was_refused(const Receipt& receipt, const std::string& path) {
        return std::any_of(receipt.failures.begin(), receipt.failures.end(), [&](const FailureLine& failure) {
            const bool is_refusal = failure.text.find("Read-only file system") != std::string::npos ||
                                    failure.text.find("Permission denied") != std::string::npos;
            return is_refusal && failure.text.find(path) != std::string::npos;
        });
    }

    // What the hook saw of the software, from its first greeting.
    void add_software(std::map<std::string, std::string>& environment) const {
        std::ifstream lines(folder_ / "hook.jsonl");
        int budget = 200;
        for (std::string line; budget > 0 && std::getline(lines, line); --budget) {
            const auto message = parse_json(line, "hook.jsonl");
            if (!message || !message->is_object() || message->value("k", json()) != "hello") continue;
            for (const char* key : {"python", "torch", "device", "device_name"}) {
                const auto found = message->find(key);
                if (found != message->end() && found->is_string()) environment[key] = found->get<std::string>();
            }
            return;
        }
    }

    // Everything that only the run needed. What cannot be removed is left for the campaign's end.
    void tidy() const {
        if (!setup_.keep_tree) (void)remove_tree(tree_);
        (void)remove_tree(scratch_);
        if (prepared_.temp_dir.find("/infrarsi-") != std::string::npos) (void)remove_tree(prepared_.temp_dir);
        std::error_code ignored;
        for (const char* name : {"spec.json", "prepared.json"}) fs::remove(folder_ / name, ignored);
        for (auto check = fs::directory_iterator(folder_ / "checks", ignored);
             !ignored && check != fs::directory_iterator(); check.increment(ignored)) {
            std::error_code unused;
            fs::remove(check->path() / "spec.json", unused);
        }
    }

    const TrialSetup& setup_;
    const Contract& contract_;
    const TrialRequest& request_;
    std::string_view key_;
    const AgentWait& wait_;
    fs::path folder_, tree_, scratch_;
    PreparedTrial prepared_;
};

}  // namespace

Expected<Receipt> run_trial(const TrialSetup& setup, const TrialRequest& request, ExecTarget& target, Clock& clock,
                            std::string_view key, std::stop_token stop,
                            const std::function<void(const TrialProgress&)>& progress) {
    INFRARSI_CHECK(setup.contract != nullptr, "a trial has a contract");
    INFRARSI_CHECK(!request.id.empty() && request.id.find('/') == std::string::npos && request.id[0] != '.',
                   "the id of a trial names a folder");
    const AgentWait wait{target, clock, std::move(stop), progress};
    auto receipt = Trial(setup, request, key, wait).run();
    if (!receipt) return wrap(std::move(receipt).error(), fmt::format("running trial {}", request.id));
    return receipt;
}

}  // namespace infrarsi
