#include "core/trial/sandbox.h"

#include <array>

#include "core/exec/target.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

bool is_inside(const fs::path& path, const fs::path& folder) {
    const fs::path relative = path.lexically_normal().lexically_relative(folder.lexically_normal());
    return !relative.empty() && *relative.begin() != "..";
}

// Empty when bubblewrap can make what is needed here, else why not.
std::string why_no_bwrap(const std::map<std::string, std::string>& env) {
    const auto probe = run_command({"bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev",
                                    "--proc", "/proc", "--cap-drop", "ALL", "true"},
                                   env, "/", std::chrono::seconds(10));
    if (!probe) {
        return probe.error().kind() == ErrorKind::not_found ? "bubblewrap (bwrap) is not installed"
                                                            : probe.error().message();
    }
    if (probe->exit_code == 0) return "";
    return fmt::format("bubblewrap does not work here: {}", probe->err.substr(0, probe->err.find('\n')));
}

// The job sees a private /tmp and /run; what the tree links to in there must be put back.
bool is_masked(const fs::path& path) {
    constexpr std::array<const char*, 3> kMasked = {"/tmp", "/var/tmp", "/run"};
    return std::any_of(kMasked.begin(), kMasked.end(), [&](const char* folder) { return is_inside(path, folder); });
}

}  // namespace

Expected<SandboxPlan> plan_sandbox(const Isolation& wanted, const SandboxPaths& paths,
                                   const std::map<std::string, std::string>& env) {
    SandboxPlan plan;
    if (wanted.sandbox == Sandbox::none) {
        plan.why = "the contract asks for no sandbox";
    } else {
        plan.why = why_no_bwrap(env);
        if (!plan.why.empty() && wanted.sandbox == Sandbox::bwrap) {
            return fail(ErrorKind::unsupported,
                        "the contract wants isolation.sandbox: bwrap, but {}; install it, or set it to auto", plan.why);
        }
    }
    plan.kind = plan.why.empty() ? "bwrap" : "none";
    if (plan.kind == "none") {
        plan.why +=
            "; frozen files are only write-protected and compared afterwards, and the job could write to linked "
            "data and read this user's other files";
        if (wanted.network == "none") plan.why += "; the network could not be taken away";
        return plan;
    }
    plan.network = wanted.network;
    plan.writable = {paths.tree.string(), paths.scratch.string()};
    for (const std::string& path : paths.frozen) plan.readonly.push_back((paths.tree / path).string());
    for (const fs::path& original : paths.linked) {
        // One by one, never the whole project: the run's folder with its secrets is in there too.
        if (is_masked(original)) plan.readonly.push_back(original.string());
    }
    plan.hidden = {paths.key_dir.string(), paths.trials_dir.string()};
    // The run's folder holds the journal; other runs lie beside it. Where the layout is another one, the trials are all
    // that can be hidden without hiding the sources too.
    for (const fs::path& folder : {paths.trials_dir.parent_path(), paths.root / ".infrarsi"}) {
        if (!is_inside(paths.root, folder) && !is_inside(paths.adapters_dir, folder)) {
            plan.hidden.push_back(folder.string());
        }
    }
    return plan;
}

}  // namespace infrarsi
