#include "core/trial/agent_run.h"

#include <csignal>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::nanoseconds kPoll = 20ms;
constexpr std::chrono::nanoseconds kProgressEvery = 200ms;
constexpr std::chrono::nanoseconds kCancelWait = 10s;  // the agent itself kills the job after 5 s
constexpr std::chrono::nanoseconds kLeaveWait = 5s;    // from agent.json to the end of the agent's own tidying

json optional_number(const auto& value) {
    return value ? json(*value) : json(nullptr);
}

json spec_json(const AgentSpec& spec, const TrialSetup& setup) {
    json hook = nullptr;
    if (spec.hook) {
        hook = {{"dir", (setup.adapters_dir / "hook").string()},
                {"nonce", spec.hook->nonce},
                {"state_at", spec.hook->state_at},
                {"audit_at", spec.hook->audit_at > 0 ? json(spec.hook->audit_at) : json(nullptr)},
                {"env_keys", spec.hook->env_keys}};
    }
    return {{"schema", "infrarsi-trial-spec-v1"},
            {"argv", {"bash", "-c", spec.command}},
            {"cwd", spec.cwd.string()},
            {"env", spec.env},
            {"out", spec.out.string()},
            {"updates", optional_number(spec.updates)},
            {"timeout_s", spec.timeout_s},
            {"silence_s", spec.silence_s},
            {"memory_cap_gib", optional_number(spec.memory_cap_gib)},
            {"hook", std::move(hook)},
            {"sandbox",
             {{"kind", spec.sandbox.kind},
              {"writable", spec.sandbox.writable},
              {"readonly", spec.sandbox.readonly},
              {"hidden", spec.sandbox.hidden},
              {"network", spec.sandbox.network}}},
            {"stop_after_updates", spec.updates.has_value()}};
}

std::map<std::string, std::string> agent_environment(const std::map<std::string, std::string>& parent) {
    std::map<std::string, std::string> env;
    for (const char* name : {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYENV_ROOT",
                             "PYENV_VERSION", "CONDA_PREFIX", "TMPDIR"}) {
        if (const auto found = parent.find(name); found != parent.end()) env[name] = found->second;
    }
    return env;
}

class Waiter {
public:
    Waiter(ProcessId agent, fs::path out, const AgentWait& wait) : agent_(agent), out_(std::move(out)), wait_(wait) {}

    AgentEnd run() {
        const auto start = wait_.clock.monotonic();
        auto next_report = start;
        while (true) {
            // In this order: an agent that ends between the two questions has written its file before.
            const bool was_alive = wait_.target.alive(agent_);
            if (has_ended()) return leave(AgentEnd::finished);
            if (!was_alive) return AgentEnd::died;
            if (wait_.stop.stop_requested()) return cancel();
            const auto now = wait_.clock.monotonic();
            if (wait_.progress && now >= next_report) {
                report(std::chrono::duration<double>(now - start).count());
                next_report = now + kProgressEvery;
            }
            wait_.clock.sleep_for(kPoll);
        }
    }

private:
    [[nodiscard]] bool has_ended() const {
        std::error_code ignored;
        return fs::exists(out_ / "agent.json", ignored);
    }

    AgentEnd cancel() {
        wait_.target.signal(agent_, SIGTERM);
        if (!wait_until_gone(kCancelWait)) {
            wait_.target.signal(agent_, SIGKILL);  // the job dies with it
            (void)wait_until_gone(kLeaveWait);
        }
        return AgentEnd::cancelled;
    }

    AgentEnd leave(AgentEnd end) {
        (void)wait_until_gone(kLeaveWait);
        if (wait_.progress) report(0);
        return end;
    }

    bool wait_until_gone(std::chrono::nanoseconds limit) {
        const auto end = wait_.clock.monotonic() + limit;
        while (wait_.target.alive(agent_)) {
            if (wait_.clock.monotonic() >= end) return false;
            wait_.clock.sleep_for(kPoll);
        }
        return true;
    }

    // progress.json is the agent's; a half-written or forged one only makes a bar jump.
    void report(double waited_s) {
        const auto read = read_json(out_ / "progress.json");
        if (!read || !read->is_object()) return;
        const auto updates = read->find("updates");
        const auto t = read->find("t");
        if (updates == read->end() || !updates->is_number_integer()) return;
        TrialProgress progress;
        progress.updates = updates->get<int>();
        progress.elapsed_s = t != read->end() && t->is_number() ? t->get<double>() / 1e9 : waited_s;
        wait_.progress(progress);
    }

    ProcessId agent_;
    fs::path out_;
    const AgentWait& wait_;
};

}  // namespace

Expected<ProcessId> start_agent(const AgentSpec& spec, const TrialSetup& setup, ExecTarget& target) {
    INFRARSI_TRY(make_folders(spec.out));
    const fs::path file = spec.out / "spec.json";
    INFRARSI_TRY(write_file(file, canonical_json(spec_json(spec, setup)), 0600));
    auto started =
        target.start({"python3", "-I", (setup.adapters_dir / "agent" / "infrarsi_agent.py").string(), file.string()},
                     agent_environment(setup.parent_env), spec.out, spec.out / "agent.log");
    if (!started) return wrap(std::move(started).error(), "starting the trial agent");
    return started;
}

std::optional<ProcessId> recorded_agent(const fs::path& out) {
    const auto read = read_json(out / "agent.pid");
    if (!read || !read->is_object()) return std::nullopt;
    const auto pid = read->find("pid");
    const auto ticks = read->find("start_ticks");
    if (pid == read->end() || ticks == read->end() || !pid->is_number_integer() || !ticks->is_number_integer()) {
        return std::nullopt;
    }
    return ProcessId{pid->get<int>(), ticks->get<std::int64_t>()};
}

AgentEnd wait_for_agent(const ProcessId& agent, const fs::path& out, const AgentWait& wait) {
    return Waiter(agent, out, wait).run();
}

std::string agent_last_words(const fs::path& out) {
    const auto log = read_file(out / "agent.log");
    if (!log) return {};
    std::string text = log->size() > 600 ? log->substr(log->size() - 600) : *log;
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
    return text;
}

}  // namespace infrarsi
