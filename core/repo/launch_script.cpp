#include "core/repo/launch_script.h"

#include <list>

#include "core/base/files.h"
#include "core/repo/launch_command.h"
#include "core/repo/syntax_tree.h"

namespace infrarsi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestScript = 4u << 20;
constexpr int kDeepest = 40;           // nested scripts, functions and statements
constexpr int kMostCommands = 20'000;  // functions that call each other

struct Found {
    PeeledCommand peeled;
    std::vector<ShellWord> words;
    LaunchPlan plan;  // what is known at that point: env, cwd, cap, places
    int source = 0;
    int line = 0;
};

struct State : ShellState {
    std::optional<double> memory_cap_gib;
    bool ended = false;  // exit, or exec of something
};

// A text that is being followed: a source, or a string given to eval or `bash -c`.
struct Frame {
    TracedText text;
    SyntaxTree tree;
};

struct Function {
    const Frame* frame = nullptr;
    TSNode body;
};

Truth negate(Truth value) {
    if (value == Truth::unknown) return value;
    return value == Truth::yes ? Truth::no : Truth::yes;
}

class Follower {
public:
    explicit Follower(const LaunchRequest& request) : request_(request) {
        state_.root = request.root.lexically_normal().string();
        while (state_.root.size() > 1 && state_.root.back() == '/') state_.root.pop_back();
        state_.cwd = (request.root / request.cwd).lexically_normal().string();
        while (state_.cwd.size() > 1 && state_.cwd.back() == '/') state_.cwd.pop_back();
        state_.script = "bash";
        for (const auto& [name, value] : request.env) {
            ShellVariable variable;
            variable.words = {ShellWord{TracedText::computed(value), std::nullopt}};
            variable.exported = true;
            state_.variables[name] = std::move(variable);
        }
    }

    Expected<LaunchPlan> run() {
        sources_.push_back({"", request_.command});
        follow(TracedText(request_.command, 0));
        if (failure_) return Unexpected(std::move(*failure_));
        return choose();
    }

private:
    // ── texts ──

    void follow(TracedText text) {
        if (depth_ >= kDeepest) return;
        frames_.push_back({std::move(text), {}});
        Frame& frame = frames_.back();
        frame.tree = SyntaxTree::parse(tree_sitter_bash(), frame.text.text());
        const Frame* before = frame_;
        frame_ = &frame;
        ++depth_;
        statements(frame.tree.root());
        --depth_;
        frame_ = before;
    }

    std::string relative(const fs::path& path) const {
        const std::string text = path.lexically_normal().string();
        if (text == state_.root) return ".";
        if (text.starts_with(state_.root + "/")) return text.substr(state_.root.size() + 1);
        return text;
    }

    // The source index of a script, read once; nothing when it cannot be read, and `missing_` says why.
    std::optional<int> open_source(const fs::path& path) {
        const std::string name = relative(path);
        for (std::size_t i = 1; i < sources_.size(); ++i) {
            if (sources_[i].path == name) return static_cast<int>(i);
        }
        std::string text;
        if (const auto over = request_.overlay.find(name); over != request_.overlay.end()) {
            text = over->second;
        } else {
            auto read = read_file(path, kLargestScript);
            if (!read) {
                missing_ = std::move(read).error();
                return std::nullopt;
            }
            text = std::move(*read);
        }
        if (text.find('\0') != std::string::npos) {
            missing_ = Error(ErrorKind::invalid_input, fmt::format("{} is a program, not a shell script", name));
            return std::nullopt;
        }
        sources_.push_back({name, std::move(text)});
        return static_cast<int>(sources_.size() - 1);
    }

    TracedText slice(TSNode node) const { return frame_->text.part(ts_node_start_byte(node), ts_node_end_byte(node)); }
    std::optional<TextSpan> span(TSNode node) const {
        return frame_->text.outer_span(ts_node_start_byte(node), ts_node_end_byte(node));
    }
    std::string where(TSNode node) const {
        const auto place = span(node);
        if (!place) return "the launch line";
        const LaunchSource& source = sources_[static_cast<std::size_t>(place->source)];
        if (source.path.empty()) return "the launch command";
        return fmt::format("{}:{}", source.path, line_at(source.text, place->begin));
    }
    void note(std::string sentence) {
        if (notes_.size() < 40 && std::find(notes_.begin(), notes_.end(), sentence) == notes_.end()) {
            notes_.push_back(std::move(sentence));
        }
    }

    // ── statements ──

    void statements(TSNode parent) {
        for_each_child(parent, [&](TSNode child) { statement(child); });
    }

    void statement(TSNode node) {
        const TSNode before = statement_;
        statement_ = node;
        (void)run_node(node);
        statement_ = before;
    }

    // Follows a node; the truth is its exit status where that can be known.
    Truth run_node(TSNode node) {
        if (state_.ended || failure_ || depth_ >= kDeepest || ++commands_ > kMostCommands) return Truth::unknown;
        ++depth_;
        const Truth result = run_kind(node, type_of(node));
        --depth_;
        return result;
    }

    Truth run_kind(TSNode node, std::string_view type) {
        if (type == "comment" || type == "heredoc_body") return Truth::unknown;
        if (type == "command") return command(node);
        if (type == "variable_assignment") return assign(node, false, std::nullopt), Truth::yes;
        if (type == "variable_assignments") return statements(node), Truth::yes;
        if (type == "declaration_command") return declare(node), Truth::yes;
        if (type == "unset_command") return unset(node), Truth::yes;
        if (type == "test_command") return test(node);
        if (type == "list") return list(node);
        if (type == "negated_command") return negate(run_node(ts_node_named_child(node, 0)));
        if (type == "redirected_statement") {
            const TSNode body = field_of(node, "body");
            return ts_node_is_null(body) ? Truth::unknown : run_node(body);
        }
        if (type == "pipeline") {
            for_each_child(node, [&](TSNode child) { (void)run_node(child); });
            return Truth::unknown;
        }
        if (type == "if_statement") return branch(node), Truth::unknown;
        if (type == "case_statement") return choose_case(node), Truth::unknown;
        if (type == "for_statement" || type == "while_statement" || type == "c_style_for_statement") {
            return loop(node), Truth::unknown;
        }
        if (type == "function_definition") {
            functions_[std::string(text_of(field_of(node, "name"), frame_->text.text()))] = {frame_,
                                                                                             field_of(node, "body")};
            return Truth::yes;
        }
        if (type == "compound_statement" || type == "do_group") return statements(node), Truth::unknown;
        if (type == "subshell") {
            const State before = state_;
            statements(node);
            state_ = before;
            return Truth::unknown;
        }
        if (type == "ERROR") {
            note(fmt::format("{} is not shell that could be read; what stands there was followed as far as possible",
                             where(node)));
            statements(node);
        }
        return Truth::unknown;
    }

    Truth list(TSNode node) {
        if (ts_node_child_count(node) < 3) return statements(node), Truth::unknown;
        const Truth left = run_node(ts_node_child(node, 0));
        const bool is_and = type_of(ts_node_child(node, 1)) == "&&";
        const TSNode right = ts_node_child(node, 2);
        // What cannot be known is taken to succeed.
        if (is_and) return left == Truth::no ? Truth::no : run_node(right);
        return left == Truth::no ? run_node(right) : left;
    }

    Truth test(TSNode node) {
        const std::string_view text = text_of(node, frame_->text.text());
        const std::size_t begin = ts_node_start_byte(node), end = ts_node_end_byte(node);
        if (text.starts_with("((")) return arithmetic(text.substr(2, text.size() - 4));
        const bool is_double = text.starts_with("[[");
        const std::size_t edge = is_double ? 2 : 1;
        if (end - begin < 2 * edge) return Truth::unknown;
        const TracedText inner = frame_->text.part(begin + edge, end - edge);
        if (!is_double) return shell_test(expand_words(inner, state_, WordSplitting::on), state_);
        // Within [[ ]] an empty variable is still a word.
        std::vector<ShellWord> words;
        for (const TracedText& token : tokens(inner)) words.push_back({expand_text(token, state_), std::nullopt});
        return shell_test(words, state_);
    }

    static std::vector<TracedText> tokens(const TracedText& text) {
        std::vector<TracedText> result;
        const std::string& bytes = text.text();
        std::size_t begin = 0;
        int depth = 0;
        char quote = 0;
        for (std::size_t i = 0; i <= bytes.size(); ++i) {
            const char c = i < bytes.size() ? bytes[i] : ' ';
            if (quote != 0) {
                if (c == quote) quote = 0;
            } else if (c == '"' || c == '\'') {
                quote = c;
            } else if (c == '{' || (c == '(' && i > 0 && bytes[i - 1] == '$')) {
                ++depth;
            } else if (depth > 0 && (c == '}' || c == ')')) {
                --depth;
            } else if (depth == 0 && (c == ' ' || c == '\n' || c == '\t')) {
                if (i > begin) result.push_back(text.part(begin, i));
                begin = i + 1;
            }
        }
        return result;
    }

    Truth arithmetic(std::string_view expression) {
        const auto value = shell_arithmetic(expression, state_);
        if (!value) return Truth::unknown;
        return *value != 0 ? Truth::yes : Truth::no;
    }

    struct Arm {
        TSNode condition{};  // null: else
        std::vector<TSNode> body;
    };

    static std::vector<Arm> arms_of(TSNode node) {
        std::vector<Arm> arms(1);
        const std::uint32_t count = ts_node_child_count(node);
        for (std::uint32_t i = 0; i < count; ++i) {
            const TSNode child = ts_node_child(node, i);
            if (!ts_node_is_named(child) || type_of(child) == "comment") continue;
            const char* field = ts_node_field_name_for_child(node, i);
            if (field != nullptr && std::string_view(field) == "condition") {
                arms[0].condition = child;
            } else if (type_of(child) == "elif_clause" || type_of(child) == "else_clause") {
                Arm arm;
                bool need_condition = type_of(child) == "elif_clause";
                for_each_child(child, [&](TSNode part) {
                    if (type_of(part) == "comment") return;
                    if (need_condition) {
                        arm.condition = part;
                        need_condition = false;
                    } else {
                        arm.body.push_back(part);
                    }
                });
                arms.push_back(std::move(arm));
            } else {
                arms[0].body.push_back(child);
            }
        }
        return arms;
    }

    void branch(TSNode node) {
        bool open = false;  // an earlier condition could not be decided
        for (const Arm& arm : arms_of(node)) {
            const Truth truth = ts_node_is_null(arm.condition) ? Truth::yes : run_node(arm.condition);
            if (truth == Truth::no) continue;
            if (truth == Truth::yes && !open) {
                for (const TSNode part : arm.body) statement(part);
                return;
            }
            if (truth == Truth::unknown) {
                open = true;
                note(fmt::format("{}: whether `{}` holds is not known before the job runs", where(arm.condition),
                                 one_line(text_of(arm.condition, frame_->text.text()))));
            }
            if (trial_of(arm.body)) {
                note(fmt::format("{}: the branch that trains first was taken", where(node)));
                return;
            }
            if (truth == Truth::yes) return;
        }
    }

    // Follows a branch that may not run; its effects stay only when it starts a training.
    bool trial_of(const std::vector<TSNode>& body) {
        const State before = state_;
        const std::size_t found_before = found_.size();
        for (const TSNode part : body) statement(part);
        const bool trains = std::any_of(found_.begin() + static_cast<std::ptrdiff_t>(found_before), found_.end(),
                                        [](const Found& found) { return found.peeled.score > 0; });
        if (!trains) state_ = before;
        return trains;
    }

    static std::string one_line(std::string_view text) {
        std::string line(text.substr(0, std::min<std::size_t>(80, text.find('\n'))));
        return line;
    }

    void choose_case(TSNode node) {
        const TracedText value = expand_text(slice(field_of(node, "value")), state_);
        bool done = false;
        for_each_child(node, [&](TSNode item) {
            if (done || type_of(item) != "case_item") return;
            bool fits = false;
            std::vector<TSNode> body;
            const std::uint32_t count = ts_node_child_count(item);
            for (std::uint32_t i = 0; i < count; ++i) {
                const TSNode child = ts_node_child(item, i);
                if (!ts_node_is_named(child)) continue;
                const char* field = ts_node_field_name_for_child(item, i);
                if (field != nullptr && std::string_view(field) == "value") {
                    fits =
                        fits || (value.known() && shell_match(expand_text(slice(child), state_).text(), value.text()));
                } else if (field == nullptr) {
                    body.push_back(child);
                }
            }
            if (!value.known()) {
                done = trial_of(body);
            } else if (fits) {
                done = true;
                for (const TSNode part : body) statement(part);
            }
        });
    }

    void loop(TSNode node) {
        const std::size_t found_before = found_.size();
        const TSNode variable = field_of(node, "variable");
        if (type_of(node) == "for_statement" && !ts_node_is_null(variable)) {
            const TSNode value = field_of(node, "value");
            std::vector<ShellWord> words;
            if (!ts_node_is_null(value)) words = expand_words(slice(value), state_, WordSplitting::on);
            if (!ts_node_is_null(value) && words.empty()) return;
            ShellVariable item;
            if (!words.empty()) item.words = {words.front()};
            state_.variables[std::string(text_of(variable, frame_->text.text()))] = std::move(item);
        } else if (type_of(node) == "while_statement") {
            const TSNode condition = field_of(node, "condition");
            const Truth truth = ts_node_is_null(condition) ? Truth::unknown : run_node(condition);
            if (truth == (text_of(node, frame_->text.text()).starts_with("until") ? Truth::yes : Truth::no)) return;
        }
        const TSNode body = field_of(node, "body");
        if (ts_node_is_null(body)) return;
        // A loop over the script's own options (`while [ $# -gt 0 ]; case …; shift`) must not end the script.
        const bool ended = state_.ended;
        statements(body);
        if (found_.size() == found_before) state_.ended = ended;
        if (found_.size() > found_before) {
            note(fmt::format("{} trains in a loop; the first pass was taken", where(node)));
        }
    }

    // ── variables ──

    void assign(TSNode node, bool exported, std::optional<TextSpan> statement) {
        const TSNode name_node = field_of(node, "name");
        if (type_of(name_node) != "variable_name") return;
        const std::string name(text_of(name_node, frame_->text.text()));
        const TSNode value = field_of(node, "value");
        ShellVariable& variable = state_.variables[name];
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
        (void)variable;
        target.is_array = is_array || (adds && target.is_array);
        target.exported = target.exported || exported;
        target.assignment = span(node);
        target.statement = statement ? statement : span(node);
    }

    void declare(TSNode node) {
        const std::string_view keyword = text_of(ts_node_child(node, 0), frame_->text.text());
        bool exports = keyword == "export";
        std::vector<TSNode> parts;
        for_each_child(node, [&](TSNode child) { parts.push_back(child); });
        const auto assignments = std::count_if(parts.begin(), parts.end(),
                                               [](TSNode part) { return type_of(part) == "variable_assignment"; });
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

    void unset(TSNode node) {
        for_each_child(node,
                       [&](TSNode child) { state_.variables.erase(std::string(text_of(child, frame_->text.text()))); });
    }

    // ── commands ──

    void append_words(TSNode node, std::vector<ShellWord>& words) {
        const TracedText raw = slice(node);
        const std::string& text = raw.text();
        auto fields = expand_words(raw, state_, WordSplitting::on);
        const bool is_list = text.find("[@]") != std::string::npos || text.find("[*]") != std::string::npos ||
                             text.find("$@") != std::string::npos || text.find("$*") != std::string::npos ||
                             text.find("${@") != std::string::npos;
        if (fields.size() == 1 && !is_list) fields.front().node = span(node);
        words.insert(words.end(), fields.begin(), fields.end());
    }

    Truth command(TSNode node) {
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

    Truth run_words(TSNode node, const std::vector<TSNode>& arguments, const std::vector<ShellWord>& words) {
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

    Truth call(const Function& function, const std::vector<ShellWord>& words) {
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

    Truth change_folder(TSNode node, const std::vector<ShellWord>& words) {
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

    Truth set_options(const std::vector<ShellWord>& words) {
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (words[i].value.text() != "--") continue;
            state_.positional.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
            break;
        }
        return Truth::yes;
    }

    void limit(const std::vector<ShellWord>& words) {
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

    void run_script(TSNode node, const std::vector<ShellWord>& words, const PeeledCommand& peeled) {
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

    void set_prefix(const std::string& name, const ShellWord& word) {
        ShellVariable variable;
        const std::size_t at = name.size() + 1;
        variable.words = {ShellWord{word.value.part(at, word.value.text().size()), std::nullopt}};
        variable.exported = true;
        variable.assignment = word.node;
        variable.statement = word.node;
        state_.variables[name] = std::move(variable);
    }

    // ── the training command ──

    void train(TSNode node, const std::vector<TSNode>& arguments, const std::vector<ShellWord>& words,
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

    void locate_entry(LaunchPlan& plan, const std::string& written, bool is_module) const {
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

    void place_flag(LaunchPlan& plan, TSNode node, const std::vector<TSNode>& arguments) const {
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

    void place_export(LaunchPlan& plan, TSNode node) const {
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

    Expected<LaunchPlan> choose() {
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

    std::string place_of(const Found& found) const {
        if (found.source < 0) return "the launch line";
        const std::string& path = sources_[static_cast<std::size_t>(found.source)].path;
        return path.empty() ? "the launch command" : fmt::format("{}:{}", path, found.line);
    }

    const LaunchRequest& request_;
    State state_;
    std::vector<LaunchSource> sources_;
    std::list<Frame> frames_;  // stable addresses: functions keep them
    const Frame* frame_ = nullptr;
    TSNode statement_{};
    std::map<std::string, Function> functions_;
    std::vector<Found> found_;
    std::vector<std::string> notes_;
    std::optional<Error> failure_, missing_;
    int depth_ = 0, commands_ = 0;
};

}  // namespace

std::string_view to_string(Launcher launcher) {
    switch (launcher) {
        case Launcher::python: return "python";
        case Launcher::torchrun: return "torchrun";
        case Launcher::accelerate: return "accelerate";
        case Launcher::deepspeed: return "deepspeed";
    }
    return "python";
}

Expected<LaunchPlan> read_launch(const LaunchRequest& request) {
    return Follower(request).run();
}

int line_at(std::string_view text, std::size_t offset) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
    return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

std::optional<FlagUse> find_flag(const LaunchPlan& plan, const std::string& flag) {
    const auto same = [](std::string_view a, std::string_view b, bool loose) {
        if (!loose) return a == b;
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](char x, char y) { return (x == '_' ? '-' : x) == (y == '_' ? '-' : y); });
    };
    for (const bool loose : {false, true}) {
        for (std::size_t i = plan.arguments.size(); i-- > 0;) {
            const std::string& text = plan.arguments[i].value.text();
            const std::size_t equals = text.starts_with("-") ? text.find('=') : std::string::npos;
            if (!same(text.substr(0, equals), flag, loose)) continue;
            FlagUse use{i, equals != std::string::npos, false, "", 0};
            if (use.equals) {
                use.has_value = true;
                use.value_at = equals + 1;
                use.value = text.substr(equals + 1);
            } else if (i + 1 < plan.arguments.size()) {
                const std::string& next = plan.arguments[i + 1].value.text();
                const bool is_number = next.size() > 1 && next[0] == '-' &&
                                       (std::isdigit(static_cast<unsigned char>(next[1])) != 0 || next[1] == '.');
                use.has_value = !next.starts_with("-") || is_number || next == "-";
                if (use.has_value) use.value = next;
            }
            return use;
        }
    }
    return std::nullopt;
}

}  // namespace infrarsi
