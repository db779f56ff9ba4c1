#include "core/repo/launch_follower.h"

namespace infrarsi {

namespace fs = std::filesystem;

void LaunchFollower::train(TSNode node, const std::vector<TSNode>& arguments, const std::vector<ShellWord>& words,
                           const PeeledCommand& peeled) {
    Found found{peeled, words, {}, 0, 0};
    LaunchPlan& plan = found.plan;
    const auto variables = state_.variables;
    for (const auto& [name, word] : peeled.env) set_prefix(name, word);
    for (const auto& [name, variable] : state_.variables) {
        if (!variable.exported || variable.words.empty()) continue;
        plan.env[name] = {variable.words.front().value, variable.assignment, variable.statement};
    }
    state_.variables = variables;
    plan.memory_cap_gib = state_.memory_cap_gib;
    plan.cwd = relative(state_.cwd);
    plan.launcher = peeled.launcher;
    plan.wrappers = peeled.wrappers;
    plan.processes_per_node = peeled.processes_per_node;
    plan.nodes = peeled.nodes;
    plan.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(peeled.entry) + 1, words.end());
    plan.command = span(node).value_or(TextSpan{});
    found.source = plan.command.source;
    if (found.source >= 0) {
        found.line = line_at(sources_[static_cast<std::size_t>(found.source)].text, plan.command.begin);
    }
    place_flag(plan, node, arguments);
    place_export(plan, node);
    locate_entry(plan, words[peeled.entry].value.text(), peeled.is_module);
    found_.push_back(std::move(found));
}

void LaunchFollower::locate_entry(LaunchPlan& plan, const std::string& written, bool is_module) const {
    plan.entry_as_written = written;
    const fs::path cwd(state_.cwd);
    std::vector<fs::path> candidates;
    if (is_module) {
        plan.module = written;
        std::string path = written;
        std::replace(path.begin(), path.end(), '.', '/');
        for (const fs::path& base : {cwd, cwd / "src", fs::path(state_.root), fs::path(state_.root) / "src"}) {
            candidates.push_back(base / (path + ".py"));
            candidates.push_back(base / path / "__main__.py");
        }
    } else {
        candidates.push_back(cwd / written);
    }
    std::error_code ignored;
    for (const fs::path& candidate : candidates) {
        const std::string name = relative(candidate);
        if (request_.overlay.contains(name) || fs::is_regular_file(candidate, ignored)) {
            plan.entry = name;
            return;
        }
    }
}

void LaunchFollower::place_flag(LaunchPlan& plan, TSNode node, const std::vector<TSNode>& arguments) const {
    std::size_t last = arguments.size();
    while (last > 0) {
        const std::string_view text = text_of(arguments[last - 1], frame_->text.text());
        if (text != "\"$@\"" && text != "$@" && text != "$*" && text != "\"${@}\"" && text != "\"${@:1}\"") break;
        --last;
    }
    const TSNode anchor = last > 0 ? arguments[last - 1] : field_of(node, "name");
    const auto place = span(anchor);
    if (!place) return;
    plan.new_flag = {{place->source, place->end, place->end}, " ", ""};
    if (place->source != plan.command.source) return;
    const std::string& text = sources_[static_cast<std::size_t>(place->source)].text;
    const std::size_t line = text.rfind('\n', place->begin == 0 ? 0 : place->begin - 1);
    if (line == std::string::npos || line < plan.command.begin || line == 0 || text[line - 1] != '\\') return;
    const std::size_t first = text.find_first_not_of(" \t", line + 1);
    plan.new_flag.before = " \\\n" + text.substr(line + 1, first - line - 1);
}

void LaunchFollower::place_export(LaunchPlan& plan, TSNode node) const {
    const bool in_command = plan.command.source == 0;
    const auto place = in_command ? span(node) : span(statement_);
    if (!place) return;
    plan.new_export.at = {place->source, place->begin, place->begin};
    if (place->source == 0) {
        plan.new_export.after = " ";
        return;
    }
    const std::string& text = sources_[static_cast<std::size_t>(place->source)].text;
    const std::size_t newline = place->begin == 0 ? std::string::npos : text.rfind('\n', place->begin - 1);
    const std::size_t line = newline == std::string::npos ? 0 : newline + 1;
    const std::string indent = text.substr(line, place->begin - line);
    const bool alone = indent.find_first_not_of(" \t") == std::string::npos;
    plan.new_export.before = "export ";
    plan.new_export.after = alone ? "\n" + indent : "; ";
}

Expected<LaunchPlan> LaunchFollower::choose() {
    const Found* best = nullptr;
    for (const Found& found : found_) {
        if (best == nullptr || found.peeled.score > best->peeled.score) best = &found;
    }
    if (best == nullptr || best->peeled.score <= 0) {
        std::string seen;
        for (const Found& found : found_) {
            seen += fmt::format("{}{} {}", seen.empty() ? "" : ", ", place_of(found),
                                found.words[found.peeled.entry].value.text());
        }
        Error error(ErrorKind::invalid_input,
                    fmt::format("no command that trains was found in {}{}; name the Python entry with --entry, or "
                                "the whole launch line with --command",
                                sources_.size() > 1 ? sources_[1].path : "the launch command",
                                seen.empty() ? "" : " (only " + seen + ")"));
        if (sources_.size() > 1) return Unexpected(std::move(error).at(Place{sources_[1].path}));
        return Unexpected(std::move(error));
    }
    for (const Found& found : found_) {
        if (&found == best || found.peeled.score <= 0) continue;
        note(fmt::format("{} also starts {}; only {} is looked at", place_of(found),
                         found.words[found.peeled.entry].value.text(), place_of(*best)));
    }
    LaunchPlan plan = best->plan;
    plan.sources = std::move(sources_);
    plan.notes = std::move(notes_);
    return plan;
}

std::string LaunchFollower::place_of(const Found& found) const {
    if (found.source < 0) return "the launch line";
    const std::string& path = sources_[static_cast<std::size_t>(found.source)].path;
    return path.empty() ? "the launch command" : fmt::format("{}:{}", path, found.line);
}

}  // namespace infrarsi
