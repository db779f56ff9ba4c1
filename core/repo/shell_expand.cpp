#include "core/repo/shell_expand.h"

#include <cctype>
#include <filesystem>

namespace infrarsi {
namespace {

// As Linux: no program can be given a longer word. A script that doubles a variable often enough would fill the memory.
constexpr std::size_t kLongestWord = 128 << 10;

bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The index just after the bracket that closes the one at `open`, with quotes and nesting respected.
std::size_t after_closing(std::string_view text, std::size_t open, char left, char right) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\\') {
            ++i;
        } else if (c == '\'' && left == '(') {
            const std::size_t close = text.find('\'', i + 1);
            if (close == std::string_view::npos) return text.size();
            i = close;
        } else if (c == left) {
            ++depth;
        } else if (c == right && --depth == 0) {
            return i + 1;
        }
    }
    return text.size();
}

// Set by the caller's environment or by a scheduler: what they hold is not known here.
bool comes_from_environment(std::string_view name) {
    static constexpr std::string_view kNames[] = {"HOME", "USER", "HOSTNAME", "PATH", "TMPDIR", "RANDOM", "UID"};
    for (const std::string_view known : kNames) {
        if (name == known) return true;
    }
    return name.starts_with("SLURM_") || name.starts_with("PBS_") || name.starts_with("LSB_");
}

class Expander {
public:
    Expander(const TracedText& raw, ShellState& state, WordSplitting splitting)
        : raw_(raw), text_(raw.text()), state_(state), splitting_(splitting) {}

    std::vector<ShellWord> run() {
        while (at_ < text_.size()) step();
        finish();
        return std::move(words_);
    }

private:
    void step() {
        const char c = text_[at_];
        if (c == '\\') {
            escape();
        } else if (c == '\'' && !quoted_) {
            single_quotes();
        } else if (c == '"') {
            quoted_ = !quoted_;
            has_word_ = true;
            if (quoted_) quotes_empty_ = false;
            ++at_;
        } else if (c == '$') {
            dollar();
        } else if (c == '`') {
            const std::size_t close = text_.find('`', at_ + 1);
            const std::size_t end = close == std::string::npos ? text_.size() : close + 1;
            add(TracedText::computed(text_.substr(at_, end - at_), false));
            at_ = end;
        } else if (is_blank(c) && !quoted_) {
            finish();
            ++at_;
        } else {
            keep(at_++);
        }
    }

    void escape() {
        if (at_ + 1 >= text_.size()) {
            keep(at_++);
        } else if (text_[at_ + 1] == '\n') {
            at_ += 2;
            if (!quoted_ && at_ < text_.size() && is_blank(text_[at_])) finish();
        } else if (quoted_ && std::string_view("$`\"\\").find(text_[at_ + 1]) == std::string_view::npos) {
            keep(at_++);
        } else {
            keep(at_ + 1);
            at_ += 2;
        }
    }

    void single_quotes() {
        has_word_ = true;
        ++at_;
        while (at_ < text_.size() && text_[at_] != '\'') keep(at_++);
        ++at_;
    }

    void dollar() {
        if (at_ + 1 >= text_.size()) {
            keep(at_++);
            return;
        }
        const char next = text_[at_ + 1];
        if (text_.compare(at_, 3, "$((") == 0) {
            const std::size_t end = after_closing(text_, at_ + 1, '(', ')');
            arithmetic(at_ + 3, end >= 2 ? end - 2 : end);
            at_ = end;
        } else if (next == '(') {
            const std::size_t end = after_closing(text_, at_ + 1, '(', ')');
            substitution(at_ + 2, end - 1, text_.substr(at_, end - at_));
            at_ = end;
        } else if (next == '{') {
            const std::size_t end = after_closing(text_, at_ + 1, '{', '}');
            braces(at_ + 2, end - 1);
            at_ = end;
        } else if (next == '\'' && !quoted_) {
            ++at_;
            single_quotes();
        } else if (is_name(next) || std::string_view("@*#?$!-").find(next) != std::string_view::npos) {
            std::size_t end = at_ + 2;
            if (is_name(next) && std::isdigit(static_cast<unsigned char>(next)) == 0) {
                while (end < text_.size() && is_name(text_[end])) ++end;
            }
            variable(text_.substr(at_ + 1, end - at_ - 1));
            at_ = end;
        } else {
            keep(at_++);
        }
    }

    void arithmetic(std::size_t begin, std::size_t end) {
        if (begin > end) return;
        const std::string expression = text_.substr(begin, end - begin);
        const auto value = shell_arithmetic(expression, state_);
        add(value ? TracedText::computed(std::to_string(*value))
                  : TracedText::computed("$((" + expression + "))", false));
    }

    // Only what scripts use to find themselves.
    void substitution(std::size_t begin, std::size_t end, const std::string& whole) {
        namespace fs = std::filesystem;
        std::string inner = end > begin ? text_.substr(begin, end - begin) : "";
        TracedText inner_raw = end > begin ? raw_.part(begin, end) : TracedText();
        const auto words = inner.find('|') == std::string::npos ? expand_words(inner_raw, state_, WordSplitting::on)
                                                                : std::vector<ShellWord>();
        const auto word = [&](std::size_t i) { return i < words.size() ? words[i].value.text() : std::string(); };
        bool all_known = !words.empty();
        for (const auto& item : words) all_known = all_known && item.value.known();
        if (!all_known) return add(TracedText::computed(whole, false));
        const std::size_t operand = word(1) == "--" || word(1) == "-P" || word(1) == "-f" ? 2 : 1;
        if (word(0) == "pwd") return add(TracedText::computed(state_.cwd));
        if (word(0) == "dirname") {
            const std::string folder = fs::path(word(operand)).parent_path().string();
            return add(TracedText::computed(folder.empty() ? "." : folder));
        }
        if (word(0) == "basename" && words.size() == operand + 1) {
            return add(TracedText::computed(fs::path(word(operand)).filename().string()));
        }
        if (word(0) == "realpath" || word(0) == "readlink") {
            return add(TracedText::computed((fs::path(state_.cwd) / word(operand)).lexically_normal().string()));
        }
        if (word(0) == "echo" && words.size() == 2) return add(words[1].value);
        if (word(0) == "cd" && (word(operand + 1) == "&&" || word(operand + 1) == ";") && word(operand + 2) == "pwd") {
            std::string folder = (fs::path(state_.cwd) / word(operand)).lexically_normal().string();
            while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
            return add(TracedText::computed(folder));
        }
        add(TracedText::computed(whole, false));
    }

    void variable(const std::string& name) {
        if (name == "@" || name == "*") return add_list(state_.positional);
        if (const auto value = lookup(name)) return add(*value);
    }

    std::optional<TracedText> lookup(const std::string& name) {
        if (name == "#") return TracedText::computed(std::to_string(state_.positional.size()));
        if (name == "0") return TracedText::computed(state_.script);
        if (name == "PWD") return TracedText::computed(state_.cwd);
        if (name == "?" || name == "$" || name == "!" || name == "-") return TracedText::computed("$" + name, false);
        if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
            const std::size_t index = std::stoul(name.substr(0, 4));
            if (index == 0 || index > state_.positional.size()) return std::nullopt;
            return state_.positional[index - 1].value;
        }
        const auto found = state_.variables.find(name);
        if (found != state_.variables.end()) {
            return found->second.words.empty() ? TracedText() : found->second.words.front().value;
        }
        if (comes_from_environment(name)) return TracedText::computed("$" + name, false);
        return std::nullopt;
    }

    const std::vector<ShellWord>* list(const std::string& name) const {
        if (name == "@" || name == "*") return &state_.positional;
        const auto found = state_.variables.find(name);
        return found == state_.variables.end() ? nullptr : &found->second.words;
    }

    // ${name…}: `begin` … `end` is the inside.
    void braces(std::size_t begin, std::size_t end) {
        if (begin >= end) return;
        std::size_t at = begin;
        const bool length = text_[at] == '#' && end - at > 1;
        if (length) ++at;
        if (text_[at] == '!') return add(TracedText::computed("${" + text_.substr(begin, end - begin) + "}", false));
        std::size_t name_end = at;
        if (!is_name(text_[at])) ++name_end;
        while (name_end < end && is_name(text_[name_end])) ++name_end;
        const std::string name = text_.substr(at, name_end - at);
        std::size_t rest = name_end;
        std::string index;
        if (rest < end && text_[rest] == '[') {
            const std::size_t close = after_closing(text_, rest, '[', ']');
            index = text_.substr(rest + 1, close - rest - 2);
            rest = close;
        }
        const bool is_list = index == "@" || index == "*" || name == "@" || name == "*";
        if (length) {
            const auto* words = list(name);
            const auto value = is_list ? std::nullopt : lookup(name);
            const std::size_t size = is_list ? (words ? words->size() : 0) : (value ? value->text().size() : 0);
            return add(TracedText::computed(std::to_string(size)));
        }
        if (is_list && rest >= end) {
            if (const auto* words = list(name)) add_list(*words);
            return;
        }
        std::optional<TracedText> value;
        if (is_list) {
            if (const auto* words = list(name); words && !words->empty()) value = TracedText::computed("x");
        } else if (!index.empty()) {
            value = element(name, index);
        } else if (name == "BASH_SOURCE") {
            value = TracedText::computed(state_.script);
        } else {
            value = lookup(name);
        }
        modified(name, value, rest, end);
    }

    std::optional<TracedText> element(const std::string& name, const std::string& index) {
        if (name == "BASH_SOURCE") return TracedText::computed(state_.script);
        const auto* words = list(name);
        const auto number = shell_arithmetic(index, state_);
        if (words == nullptr) return std::nullopt;
        if (!number) return TracedText::computed("${" + name + "[" + index + "]}", false);
        const auto size = static_cast<long long>(words->size());
        const long long at = *number < 0 ? *number + size : *number;
        if (at < 0 || at >= size) return std::nullopt;
        return (*words)[static_cast<std::size_t>(at)].value;
    }

    // The operators after a name: defaults, alternatives, trimming, substrings, case.
    void modified(const std::string& name, const std::optional<TracedText>& value, std::size_t rest, std::size_t end) {
        if (rest >= end) {
            if (value) add(*value);
            return;
        }
        const bool colon = text_[rest] == ':';
        const std::size_t op_at = rest + (colon ? 1 : 0);
        const char op = op_at < end ? text_[op_at] : '\0';
        const bool is_set = value && !(colon && value->text().empty());
        const TracedText operand = op_at + 1 < end ? raw_.part(op_at + 1, end) : TracedText();
        if (op == '-' || op == '=') {
            if (is_set) return add(*value);
            if (op == '=') state_.variables[name].words = {ShellWord{expand_text(operand, state_), std::nullopt}};
            return add_expanded(operand);
        }
        if (op == '+') {
            if (is_set) add_expanded(operand);
            return;
        }
        if (op == '?') {
            add(is_set ? *value : TracedText::computed("${" + name + "}", false));
            return;
        }
        if (!value) return;
        if (!value->known()) return add(*value);
        if (colon) return substring(*value, text_.substr(rest + 1, end - rest - 1));
        if (op == '#' || op == '%') return trim(*value, op, rest, end);
        if (op == '^' || op == ',') {
            std::string text = value->text();
            const bool all = text_.compare(rest, 2, std::string(2, op)) == 0;
            for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(1, text.size())); ++i) {
                const auto byte = static_cast<unsigned char>(text[i]);
                text[i] = static_cast<char>(op == '^' ? std::toupper(byte) : std::tolower(byte));
            }
            return add(TracedText::computed(text));
        }
        if (op == '/') return replace(*value, rest, end);
        add(TracedText::computed("${" + name + "…}", false));
    }

    void substring(const TracedText& value, const std::string& spec) {
        const std::size_t colon = spec.find(':');
        const auto from = shell_arithmetic(spec.substr(0, colon), state_);
        const auto size = static_cast<long long>(value.text().size());
        const auto count = colon == std::string::npos ? std::optional<long long>(size)
                                                      : shell_arithmetic(spec.substr(colon + 1), state_);
        if (!from || !count) return add(TracedText::computed(value.text(), false));
        const long long begin = std::clamp(*from < 0 ? size + *from : *from, 0LL, size);
        const long long end = std::clamp(*count < 0 ? size + *count : begin + *count, begin, size);
        add(value.part(static_cast<std::size_t>(begin), static_cast<std::size_t>(end)));
    }

    void trim(const TracedText& value, char op, std::size_t rest, std::size_t end) {
        const bool longest = rest + 1 < end && text_[rest + 1] == op;
        const std::size_t at = rest + (longest ? 2 : 1);
        const std::string pattern = at < end ? expand_text(raw_.part(at, end), state_).text() : "";
        const std::size_t size = value.text().size();
        const std::string_view text = value.text();
        for (std::size_t i = 0; i <= size; ++i) {
            const std::size_t cut = longest ? size - i : i;
            const bool fits =
                op == '#' ? shell_match(pattern, text.substr(0, cut)) : shell_match(pattern, text.substr(size - cut));
            if (fits) return add(op == '#' ? value.part(cut, size) : value.part(0, size - cut));
        }
        add(value);
    }

    void replace(const TracedText& value, std::size_t rest, std::size_t end) {
        const bool all = rest + 1 < end && text_[rest + 1] == '/';
        const std::string spec = text_.substr(rest + (all ? 2 : 1), end - rest - (all ? 2 : 1));
        const std::size_t slash = spec.find('/');
        const std::string from = spec.substr(0, slash);
        const std::string to = slash == std::string::npos ? "" : spec.substr(slash + 1);
        const bool plain = !from.empty() && spec.find_first_of("$*?[\\'\"") == std::string::npos;
        if (!plain) return add(TracedText::computed(value.text(), false));
        std::string text = value.text();
        for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
            text.replace(at, from.size(), to);
            if (!all) break;
        }
        add(TracedText::computed(text));
    }

    void add_expanded(const TracedText& operand) {
        if (quoted_) return add(expand_text(operand, state_));
        const auto words = expand_words(operand, state_, splitting_);
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (i > 0) finish();
            current_.append(words[i].value);
            has_word_ = true;
        }
    }

    void add(const TracedText& value) {
        if (current_.text().size() + value.text().size() > kLongestWord) {
            current_.set_unknown();
            has_word_ = true;
            return;
        }
        if (quoted_ || splitting_ == WordSplitting::off) {
            current_.append(value);
            has_word_ = true;
            return;
        }
        if (!value.known() && value.text().find_first_of(" \t\n") != std::string::npos) {
            current_.append(value);  // the spelling of a substitution: it has blanks, its value perhaps not
            has_word_ = true;
            return;
        }
        std::size_t at = 0;
        const std::string& text = value.text();
        while (at < text.size()) {
            if (is_blank(text[at])) {
                finish();
                ++at;
                continue;
            }
            std::size_t end = at;
            while (end < text.size() && !is_blank(text[end])) ++end;
            current_.append(value.part(at, end));
            has_word_ = true;
            at = end;
        }
    }

    void add_list(const std::vector<ShellWord>& words) {
        if (words.empty()) {
            if (quoted_ && current_.text().empty()) quotes_empty_ = true;
            return;
        }
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (i > 0) finish();
            if (current_.text().empty()) node_ = words[i].node;
            if (quoted_) {
                current_.append(words[i].value);
                has_word_ = true;
            } else {
                add(words[i].value);
            }
        }
    }

    void keep(std::size_t index) {
        current_.append(text_[index], raw_.origin(index));
        has_word_ = true;
        node_.reset();
    }

    void finish() {
        if (has_word_ && !(quotes_empty_ && current_.text().empty())) {
            if (!node_) node_ = current_.span();
            words_.push_back({std::move(current_), node_});
        }
        current_ = TracedText();
        node_.reset();
        has_word_ = false;
        quotes_empty_ = false;
    }

    const TracedText& raw_;
    const std::string& text_;
    ShellState& state_;
    WordSplitting splitting_;
    std::size_t at_ = 0;
    bool quoted_ = false, has_word_ = false;
    bool quotes_empty_ = false;  // "$@" without arguments is no word at all
    TracedText current_;
    std::optional<TextSpan> node_;
    std::vector<ShellWord> words_;
};

}  // namespace

std::vector<ShellWord> expand_words(const TracedText& raw, ShellState& state, WordSplitting splitting) {
    constexpr int kDeepest = 100;
    if (state.depth >= kDeepest) return {ShellWord{TracedText::computed(raw.text(), false), std::nullopt}};
    ++state.depth;
    auto words = Expander(raw, state, splitting).run();
    --state.depth;
    return words;
}

TracedText expand_text(const TracedText& raw, ShellState& state) {
    // White space between parts stands for itself here, so it goes in as if it were quoted.
    TracedText result;
    std::size_t begin = 0;
    const auto flush = [&](std::size_t end) {
        if (end <= begin) return;
        const auto words = expand_words(raw.part(begin, end), state, WordSplitting::off);
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (i > 0) result.append(TracedText::computed(" "));
            result.append(words[i].value);
        }
    };
    char quote = 0;
    int depth = 0;
    const std::string& text = raw.text();
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\\') {
            ++i;
        } else if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '{' || c == '(') {
            ++depth;
        } else if (c == '}' || c == ')') {
            --depth;
        } else if (is_blank(c) && depth <= 0) {
            flush(i);
            result.append(c, raw.origin(i));
            begin = i + 1;
        }
    }
    flush(text.size());
    return result;
}

}  // namespace infrarsi
