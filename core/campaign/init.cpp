#include "core/campaign/init.h"

#include "core/base/files.h"
#include "core/campaign/draft_knobs.h"
#include "core/campaign/draft_scope.h"
#include "core/campaign/draft_target.h"
#include "core/repo/config_file.h"
#include "core/repo/source_tree.h"
#include "core/text/utf8.h"

namespace infrarsi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestConfig = 4u << 20;

bool is_contract_file(const fs::path& path) {
    return path.filename() == "infrarsi.yaml";
}

// Configuration files on the launch line, and the globals of Python files given before the flags (nanoGPT).
void read_configs(const DraftTarget& target, const std::string& config, KnobSources& sources, Draft& draft) {
    std::vector<std::string> names;
    for (const ShellWord& word : target.plan.arguments) {
        const std::string& text = word.value.text();
        const std::size_t equals = text.starts_with("--") ? text.find('=') : std::string::npos;
        names.push_back(equals == std::string::npos ? text : text.substr(equals + 1));
    }
    if (!config.empty()) names.push_back(config);
    std::error_code ignored;
    for (const std::string& name : names) {
        const bool python = name.ends_with(".py");
        if ((!python && !config_format(name)) || name.starts_with("-")) continue;
        const fs::path path = (target.root / target.plan.cwd / name).lexically_normal();
        const std::string relative = path.lexically_relative(target.root.lexically_normal()).generic_string();
        if (relative.starts_with("..") || !fs::is_regular_file(path, ignored)) continue;
        const auto text = read_file(path, kLargestConfig);
        if (!text) continue;
        if (python) {
            for (const auto& [key, value] : read_python(*text, relative).globals) sources.overrides[key] = value;
            draft.notes.push_back(
                fmt::format("{} sets globals of {}; flags on the launch line go over it", relative, target.plan.entry));
        } else {
            const auto scalars = config_scalars(*text, *config_format(name), relative);
            if (!scalars) {
                draft.warnings.push_back(
                    fmt::format("{}: its settings are not among the knobs", scalars.error().describe()));
                continue;
            }
            sources.configs[relative] = *text;
        }
    }
}

// The folder's name where a contract can hold it.
std::string name_of(const fs::path& root) {
    const std::string name = root.filename().string();
    const bool is_line = std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
    return is_line && !name.empty() && name.size() <= 200 && !first_invalid_utf8(name) ? name : "project";
}

void describe_launch(const DraftTarget& target, Draft& draft) {
    const LaunchPlan& plan = target.plan;
    Launch& launch = draft.contract.launch;
    if (draft.contract.launch.stack == Stack::auto_) return;
    std::string how = plan.entry;
    if (plan.launcher != Launcher::python) how += fmt::format(" through {}", to_string(plan.launcher));
    if (plan.processes_per_node) how += fmt::format(", {} processes a node", *plan.processes_per_node);
    draft.comments.entries["launch.command"] = "starts " + how;
    if (plan.nodes) launch.nodes = *plan.nodes;
    draft.comments.entries["launch.stack"] = "found from the launch line and the imports";
    if (plan.memory_cap_gib) {
        draft.contract.invariants.memory_cap_gib = std::ceil(*plan.memory_cap_gib * 1000) / 1000;
        draft.comments.entries["invariants.memory_cap_gib"] = "from ulimit on the launch line, a process";
    }
}

Expected<Draft> draft_from(const DraftTarget& target, const DraftOptions& options, const HardwareProbe& hardware,
                           const MechanismTable& mechanisms) {
    std::error_code ignored;
    const fs::path starts_in = target.root / target.plan.cwd;
    if (!options.config.empty() && !fs::is_regular_file(starts_in / options.config, ignored)) {
        return fail(ErrorKind::not_found, "there is no config file {} in {}, where {} starts", options.config,
                    starts_in.lexically_normal().string(), target.plan.entry);
    }
    Draft draft;
    Contract& contract = draft.contract;
    contract.root = target.root;
    contract.file = target.root / "infrarsi.yaml";
    contract.name = options.name.empty() ? name_of(target.root) : options.name;
    contract.launch.command = target.command;
    draft.notes = target.notes;
    draft.notes.insert(draft.notes.end(), target.plan.notes.begin(), target.plan.notes.end());

    INFRARSI_ASSIGN(const PythonClosure closure, read_python_closure(target.root, target.plan.entry, target.plan.cwd));
    draft.notes.insert(draft.notes.end(), closure.notes.begin(), closure.notes.end());
    contract.launch.stack = detect_stack(target.plan, closure);
    if (hardware.gpus > 0 && target.plan.processes_per_node)
        contract.launch.gpus_per_node = *target.plan.processes_per_node;
    describe_launch(target, draft);

    const auto declared = closure.options();
    KnobSources sources{target.plan, declared, hardware, mechanisms, {}, {}};
    read_configs(target, options.config, sources, draft);
    draft_knobs(draft, sources);
    draft_window(draft, sources);
    INFRARSI_ASSIGN(const SourceTree tree, list_sources(target.root, {".py"}, {4, 100'000, 5'000}));
    if (!tree.is_complete)
        draft.notes.push_back("the project is large; not every folder was looked at for files to freeze");
    draft_scope(draft, closure, tree.files);
    if (contract.knobs.empty()) {
        draft.warnings.push_back("no knob was found; add some to infrarsi.yaml, or let trials be patches only");
    }
    return draft;
}

// An existing contract keeps its words; only knobs that it lacks and empty scopes are filled in.
Expected<Draft> draft_again(const fs::path& file, const HardwareProbe& hardware, const MechanismTable& mechanisms) {
    INFRARSI_ASSIGN(Contract contract, read_contract(file));
    LaunchRequest request;
    request.root = contract.root;
    request.cwd = contract.launch.cwd;
    request.command = contract.launch.command;
    request.env = contract.launch.env;
    INFRARSI_ASSIGN(LaunchPlan plan, read_launch(request));
    if (plan.entry.empty()) {
        return fail_at(ErrorKind::not_found, {file.string()},
                       "launch.command starts {}, which is not there; correct it", plan.entry_as_written);
    }
    DraftOptions options;
    options.name = contract.name;
    INFRARSI_ASSIGN(Draft fresh, draft_from({contract.root, contract.launch.command, std::move(plan), {}}, options,
                                            hardware, mechanisms));
    Draft draft;
    draft.notes = fresh.notes;
    draft.warnings = fresh.warnings;
    draft.contract = std::move(contract);
    for (const Knob& knob : fresh.contract.knobs) {
        const auto same = [&](const Knob& other) {
            return other.name == knob.name || (other.kind == knob.kind && other.spelling == knob.spelling);
        };
        if (std::any_of(draft.contract.knobs.begin(), draft.contract.knobs.end(), same)) continue;
        // A batch knob alone would come without its partner and its constraint.
        if (knob.mechanism == "micro_batch" || knob.mechanism == "grad_accum" || knob.mechanism == "global_batch")
            continue;
        draft.contract.knobs.push_back(knob);
        draft.comments.knobs[knob.name] = fresh.comments.knobs[knob.name];
        draft.notes.push_back(fmt::format("{} ({}) is a knob that {} does not have yet", knob.name, knob.spelling,
                                          file.filename().string()));
    }
    if (draft.contract.editable.empty()) draft.contract.editable = fresh.contract.editable;
    if (draft.contract.frozen.empty()) draft.contract.frozen = fresh.contract.frozen;
    draft.comments.scope = fresh.comments.scope;
    return draft;
}

}  // namespace

Expected<Draft> draft_contract(const fs::path& target, const DraftOptions& options, const HardwareProbe& hardware,
                               const MechanismTable& mechanisms) {
    const fs::path path = target.lexically_normal();
    std::error_code ignored;
    const bool redraft = is_contract_file(path) && fs::is_regular_file(path, ignored);
    if (redraft && options.entry.empty() && options.command.empty()) return draft_again(path, hardware, mechanisms);
    fs::path place = is_contract_file(path) ? path.parent_path() : path;
    if (place.filename().empty() && place.has_parent_path() && place != place.root_path()) place = place.parent_path();
    INFRARSI_ASSIGN(const DraftTarget found, find_target(place, options));
    return draft_from(found, options, hardware, mechanisms);
}

}  // namespace infrarsi
