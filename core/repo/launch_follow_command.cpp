#include "core/repo/launch_follower.h"

namespace infrarsi {

namespace fs = std::filesystem;

void LaunchFollower::assign(TSNode node, bool exported, std::optional<TextSpan> statement) {
    const TSNode name_node = field_of(node, "name");
    if (type_of(name_node) != "variable_name") return;
    const std::string name(text_of(name_node, frame_->text.text()));
    const TSNode value = field_of(node, "value");
    const bool adds = type_of(ts_node_next_sibling(name_node)) == "+=";
    std::vector<ShellWord> words;
    const bool is_array = type_of(value) == "array";
    if (is_array) {
        for_each_child(value, [&](TSNode element) {
            if (type_of(element) != "comment") append_words(element, words);
        });
    } else if (!ts_node_is_null(value)) {
        words = {ShellWord{expand_text(slice(value), state_), span(value)}};
    }
    ShellVariable& target = state_.variables[name];  // expansion may have added variables
    if (adds && (is_array || target.is_array)) {
        target.words.insert(target.words.end(), words.begin(), words.end());
    } else if (adds && !target.words.empty() && !words.empty()) {
        target.words.front().value.append(words.front().value);
    } else {
        target.words = std::move(words);
    }
    target.is_array = is_array || (adds && target.is_array);
    target.exported = target.exported || exported;
    target.assignment = span(node);
    target.statement = statement ? statement : span(node);
}

void LaunchFollower::declare(TSNode node) {
    const std::string_view keyword = text_of(ts_node_child(node, 0), frame_->text.text());
    bool exports = keyword == "export";
    std::vector<TSNode> parts;
    for_each_child(node, [&](TSNode child) { parts.push_back(child); });
    const auto assignments =
        std::count_if(parts.begin(), parts.end(), [](TSNode part) { return type_of(part) == "variable_assignment"; });
    for (const TSNode part : parts) {
        const std::string_view text = text_of(part, frame_->text.text());
        if (type_of(part) == "variable_assignment") {
            assign(part, exports, assignments == 1 ? span(node) : span(part));
        } else if (type_of(part) == "variable_name" || type_of(part) == "word") {
            if (text.starts_with("-")) {
                exports = exports || text.find('x') != std::string_view::npos;
            } else if (exports) {
                state_.variables[std::string(text)].exported = true;
            }
        }
    }
}

void LaunchFollower::unset(TSNode node) {
    for_each_child(node,
                   [&](TSNode child) { state_.variables.erase(std::string(text_of(child, frame_->text.text()))); });
}

void LaunchFollower::append_words(TSNode node, std::vector<ShellWord>& words) {
    const TracedText raw = slice(node);
    const std::string& text = raw.text();
    auto fields = expand_words(raw, state_, WordSplitting::on);
    const bool is_list = text.find("[@]") != std::string::npos || text.find("[*]") != std::string::npos ||
                         text.find("$@") != std::string::npos || text.find("$*") != std::string::npos ||
                         text.find("${@") != std::string::npos;
    if (fields.size() == 1 && !is_list) fields.front().node = span(node);
    words.insert(words.end(), fields.begin(), fields.end());
}

Truth LaunchFollower::command(TSNode node) {
    std::vector<TSNode> assignments, arguments;
    TSNode name{};
    const std::uint32_t count = ts_node_child_count(node);
    for (std::uint32_t i = 0; i < count; ++i) {
        const TSNode child = ts_node_child(node, i);
        if (!ts_node_is_named(child)) continue;
        if (type_of(child) == "variable_assignment" && ts_node_is_null(name)) {
            assignments.push_back(child);
        } else if (type_of(child) == "command_name") {
            name = child;
        } else if (!type_of(child).ends_with("redirect") && type_of(child) != "comment") {
            arguments.push_back(child);
        }
    }
    if (ts_node_is_null(name)) {
        for (const TSNode part : assignments) assign(part, false, std::nullopt);
        return Truth::yes;
    }
    if (text_of(name, frame_->text.text()).starts_with("((")) {
        const std::string_view text = text_of(name, frame_->text.text());
        return arithmetic(text.substr(2, text.size() - 4));
    }
    std::vector<ShellWord> words;
    append_words(name, words);
    for (const TSNode part : arguments) append_words(part, words);
    if (words.empty()) return Truth::unknown;
    // `A=1 command`: the assignments hold for this command only.
    const auto before = assignments.empty() ? std::map<std::string, ShellVariable>() : state_.variables;
    for (const TSNode part : assignments) assign(part, true, std::nullopt);
    const Truth result = run_words(node, arguments, words);
    if (!assignments.empty()) state_.variables = before;
    return result;
}

Truth LaunchFollower::run_words(TSNode node, const std::vector<TSNode>& arguments,
                                const std::vector<ShellWord>& words) {
    const std::string& name = words.front().value.text();
    if (const auto function = functions_.find(name); function != functions_.end()) {
        return call(function->second, words);
    }
    if (name == "true" || name == ":") return Truth::yes;
    if (name == "false") return Truth::no;
    if (name == "exit" || name == "return") {
        state_.ended = true;
        return Truth::unknown;
    }
    if (name == "cd" || name == "pushd") return change_folder(node, words);
    if (name == "shift") {
        if (!state_.positional.empty()) state_.positional.erase(state_.positional.begin());
        return state_.positional.empty() ? Truth::no : Truth::yes;
    }
    if (name == "set") return set_options(words);
    if (name == "ulimit") return limit(words), Truth::yes;
    if (name == "test" || name == "[") {
        auto operands = std::vector<ShellWord>(words.begin() + 1, words.end());
        if (!operands.empty() && operands.back().value.text() == "]") operands.pop_back();
        return shell_test(operands, state_);
    }
    if (name == "eval") {
        TracedText text;
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (i > 1) text.append(TracedText::computed(" "));
            text.append(words[i].value);
        }
        follow(std::move(text));
        return Truth::unknown;
    }
    const PeeledCommand peeled = peel_command(words);
    if (peeled.kind == PeeledCommand::Kind::training) train(node, arguments, words, peeled);
    if (peeled.kind == PeeledCommand::Kind::script) run_script(node, words, peeled);
    if (peeled.kind == PeeledCommand::Kind::shell_text) follow(words[peeled.entry].value);
    if (name == "exec" && words.size() > 1) state_.ended = true;
    return Truth::unknown;
}

Truth LaunchFollower::call(const Function& function, const std::vector<ShellWord>& words) {
    auto positional = std::vector<ShellWord>(words.begin() + 1, words.end());
    std::swap(positional, state_.positional);
    const Frame* before = frame_;
    frame_ = function.frame;
    const bool ended = state_.ended;
    (void)run_node(function.body);
    // `return` ends the function only; `exit` in one (usage, die) is taken as not reached.
    state_.ended = ended;
    frame_ = before;
    std::swap(positional, state_.positional);
    return Truth::unknown;
}

Truth LaunchFollower::change_folder(TSNode node, const std::vector<ShellWord>& words) {
    const std::size_t at = words.size() > 2 && words[1].value.text() == "--" ? 2 : 1;
    if (words.size() <= at) return Truth::unknown;
    if (!words[at].value.known()) {
        note(fmt::format("{} changes to a folder that is not known before the job runs", where(node)));
        return Truth::unknown;
    }
    std::string folder = (fs::path(state_.cwd) / words[at].value.text()).lexically_normal().string();
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    state_.cwd = folder;
    return Truth::yes;
}

Truth LaunchFollower::set_options(const std::vector<ShellWord>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i].value.text() != "--") continue;
        state_.positional.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
        break;
    }
    return Truth::yes;
}

void LaunchFollower::limit(const std::vector<ShellWord>& words) {
    bool memory = false;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string& text = words[i].value.text();
        if (text.starts_with("-")) {
            memory = text.find('d') != std::string::npos || text.find('v') != std::string::npos ||
                     (memory && (text == "-S" || text == "-H"));
            continue;
        }
        const auto kib = shell_arithmetic(text, state_);
        if (!memory || !kib || *kib <= 0 || !words[i].value.known()) continue;
        const double gib = static_cast<double>(*kib) / (1024.0 * 1024.0);
        state_.memory_cap_gib = std::min(state_.memory_cap_gib.value_or(gib), gib);
    }
}

void LaunchFollower::run_script(TSNode node, const std::vector<ShellWord>& words, const PeeledCommand& peeled) {
    const ShellWord& script = words[peeled.entry];
    const std::string& first = words.front().value.text();
    const bool sourced = first == "source" || first == ".";
    if (!script.value.known()) {
        note(fmt::format("{} runs a script whose path is not known before the job runs", where(node)));
        return;
    }
    const fs::path path = (fs::path(state_.cwd) / script.value.text()).lexically_normal();
    const auto source = open_source(path);
    if (!source) {
        const auto place = span(node);
        if (!sourced && place && place->source == 0) {
            failure_ = Error(missing_->kind(), fmt::format("cannot read the launch script {}: {}; correct "
                                                           "launch.command, or give the script with --entry",
                                                           relative(path), missing_->message()))
                           .at(Place{relative(path)});
        } else {
            note(fmt::format("{} runs {}, which could not be read", where(node), relative(path)));
        }
        return;
    }
    std::vector<ShellWord> positional(words.begin() + static_cast<std::ptrdiff_t>(peeled.entry) + 1, words.end());
    TracedText text(sources_[static_cast<std::size_t>(*source)].text, *source);
    if (sourced) {
        const std::string before = std::exchange(state_.script, script.value.text());
        follow(std::move(text));
        state_.script = before;
        return;
    }
    const State before = state_;
    std::erase_if(state_.variables, [](const auto& item) { return !item.second.exported; });
    for (const auto& [name, word] : peeled.env) set_prefix(name, word);
    state_.positional = std::move(positional);
    state_.script = script.value.text();
    const auto functions = std::exchange(functions_, {});
    follow(std::move(text));
    functions_ = functions;
    state_ = before;
}

void LaunchFollower::set_prefix(const std::string& name, const ShellWord& word) {
    ShellVariable variable;
    const std::size_t at = name.size() + 1;
    variable.words = {ShellWord{word.value.part(at, word.value.text().size()), std::nullopt}};
    variable.exported = true;
    variable.assignment = word.node;
    variable.statement = word.node;
    state_.variables[name] = std::move(variable);
}

}  // namespace infrarsi
