#include "core/repo/launch_follower.h"

#include "core/base/files.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestScript = 4u << 20;
constexpr int kDeepest = 40;           // nested scripts, functions and statements
constexpr int kMostCommands = 20'000;  // functions that call each other

Truth negate(Truth value) {
    if (value == Truth::unknown) return value;
    return value == Truth::yes ? Truth::no : Truth::yes;
}

std::vector<TracedText> tokens(const TracedText& text) {
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

struct Arm {
    TSNode condition{};  // null: else
    std::vector<TSNode> body;
};

std::vector<Arm> arms_of(TSNode node) {
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

std::string one_line(std::string_view text) {
    std::string line(text.substr(0, std::min<std::size_t>(80, text.find('\n'))));
    return line;
}

}  // namespace

LaunchFollower::LaunchFollower(const LaunchRequest& request) : request_(request) {
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

Expected<LaunchPlan> LaunchFollower::run() {
    sources_.push_back({"", request_.command});
    follow(TracedText(request_.command, 0));
    if (failure_) return Unexpected(std::move(*failure_));
    return choose();
}

void LaunchFollower::follow(TracedText text) {
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

std::string LaunchFollower::relative(const fs::path& path) const {
    const std::string text = path.lexically_normal().string();
    if (text == state_.root) return ".";
    if (text.starts_with(state_.root + "/")) return text.substr(state_.root.size() + 1);
    return text;
}

std::optional<int> LaunchFollower::open_source(const fs::path& path) {
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

TracedText LaunchFollower::slice(TSNode node) const {
    return frame_->text.part(ts_node_start_byte(node), ts_node_end_byte(node));
}

std::optional<TextSpan> LaunchFollower::span(TSNode node) const {
    return frame_->text.outer_span(ts_node_start_byte(node), ts_node_end_byte(node));
}

std::string LaunchFollower::where(TSNode node) const {
    const auto place = span(node);
    if (!place) return "the launch line";
    const LaunchSource& source = sources_[static_cast<std::size_t>(place->source)];
    if (source.path.empty()) return "the launch command";
    return fmt::format("{}:{}", source.path, line_at(source.text, place->begin));
}

void LaunchFollower::note(std::string sentence) {
    if (notes_.size() < 40 && std::find(notes_.begin(), notes_.end(), sentence) == notes_.end()) {
        notes_.push_back(std::move(sentence));
    }
}

void LaunchFollower::statements(TSNode parent) {
    for_each_child(parent, [&](TSNode child) { statement(child); });
}

void LaunchFollower::statement(TSNode node) {
    const TSNode before = statement_;
    statement_ = node;
    (void)run_node(node);
    statement_ = before;
}

Truth LaunchFollower::run_node(TSNode node) {
    if (state_.ended || failure_ || depth_ >= kDeepest || ++commands_ > kMostCommands) return Truth::unknown;
    ++depth_;
    const Truth result = run_kind(node, type_of(node));
    --depth_;
    return result;
}

Truth LaunchFollower::run_kind(TSNode node, std::string_view type) {
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

Truth LaunchFollower::list(TSNode node) {
    if (ts_node_child_count(node) < 3) return statements(node), Truth::unknown;
    const Truth left = run_node(ts_node_child(node, 0));
    const bool is_and = type_of(ts_node_child(node, 1)) == "&&";
    const TSNode right = ts_node_child(node, 2);
    // What cannot be known is taken to succeed.
    if (is_and) return left == Truth::no ? Truth::no : run_node(right);
    return left == Truth::no ? run_node(right) : left;
}

Truth LaunchFollower::test(TSNode node) {
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

Truth LaunchFollower::arithmetic(std::string_view expression) {
    const auto value = shell_arithmetic(expression, state_);
    if (!value) return Truth::unknown;
    return *value != 0 ? Truth::yes : Truth::no;
}

void LaunchFollower::branch(TSNode node) {
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

bool LaunchFollower::trial_of(const std::vector<TSNode>& body) {
    const State before = state_;
    const std::size_t found_before = found_.size();
    for (const TSNode part : body) statement(part);
    const bool trains = std::any_of(found_.begin() + static_cast<std::ptrdiff_t>(found_before), found_.end(),
                                    [](const Found& found) { return found.peeled.score > 0; });
    if (!trains) state_ = before;
    return trains;
}

void LaunchFollower::choose_case(TSNode node) {
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
                fits = fits || (value.known() && shell_match(expand_text(slice(child), state_).text(), value.text()));
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

void LaunchFollower::loop(TSNode node) {
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

}  // namespace infrarsi
