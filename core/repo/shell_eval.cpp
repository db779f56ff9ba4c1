// Arithmetic, patterns and tests of the shell: the parts of shell_expand.h that judge rather than expand.
#include <cctype>
#include <charconv>
#include <filesystem>

#include "core/repo/shell_expand.h"

namespace infrarsi {
namespace {

// Precedence climbing over C-like integer expressions.
class Arithmetic {
public:
    Arithmetic(std::string_view text, ShellState& state) : text_(text), state_(state) {}

    std::optional<long long> run() {
        const auto value = ternary();
        skip();
        return at_ == text_.size() ? value : std::nullopt;
    }

private:
    using Number = std::optional<long long>;

    void skip() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    }
    bool take(std::string_view token) {
        skip();
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }

    Number ternary() {
        const Number condition = binary(0);
        if (!take("?")) return condition;
        const Number yes = ternary();
        if (!take(":")) return std::nullopt;
        const Number no = ternary();
        if (!condition) return std::nullopt;
        return *condition != 0 ? yes : no;
    }

    Number binary(int level) {
        static const std::vector<std::vector<std::string_view>> kLevels = {
            {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
        if (level == static_cast<int>(kLevels.size())) return unary();
        Number left = binary(level + 1);
        for (;;) {
            std::string_view op;
            skip();
            for (const std::string_view candidate : kLevels[static_cast<std::size_t>(level)]) {
                if (text_.substr(at_).starts_with(candidate)) {
                    op = candidate;
                    break;
                }
            }
            if (op.empty() || (op == "*" && text_.substr(at_).starts_with("**"))) return left;
            at_ += op.size();
            const Number right = binary(level + 1);
            left = left && right ? apply(op, *left, *right) : std::nullopt;
        }
    }

    static Number apply(std::string_view op, long long a, long long b) {
        if (op == "+")
            return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
        if (op == "-")
            return static_cast<long long>(static_cast<unsigned long long>(a) - static_cast<unsigned long long>(b));
        if (op == "*")
            return static_cast<long long>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
        if (op == "/") return b == 0 || b == -1 ? (b == 0 ? Number() : Number(-a)) : Number(a / b);
        if (op == "%") return b == 0 ? Number() : (b == -1 ? Number(0) : Number(a % b));
        if (op == "==") return a == b ? 1 : 0;
        if (op == "!=") return a != b ? 1 : 0;
        if (op == "<") return a < b ? 1 : 0;
        if (op == ">") return a > b ? 1 : 0;
        if (op == "<=") return a <= b ? 1 : 0;
        if (op == ">=") return a >= b ? 1 : 0;
        if (op == "&&") return a != 0 && b != 0 ? 1 : 0;
        return a != 0 || b != 0 ? 1 : 0;
    }

    Number unary() {
        if (++depth_ > 100) return std::nullopt;
        Number value;
        if (take("!")) {
            const Number inner = unary();
            value = inner ? Number(*inner == 0 ? 1 : 0) : std::nullopt;
        } else if (take("-")) {
            const Number inner = unary();
            value = inner ? Number(-*inner) : std::nullopt;
        } else if (take("+")) {
            value = unary();
        } else if (take("(")) {
            value = ternary();
            if (!take(")")) value.reset();
        } else {
            value = primary();
        }
        --depth_;
        return value;
    }

    Number primary() {
        skip();
        std::size_t end = at_;
        if (at_ < text_.size() && text_[at_] == '$') {
            end = dollar_end();
        } else {
            while (end < text_.size() &&
                   (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_')) {
                ++end;
            }
        }
        std::string token(text_.substr(at_, end - at_));
        at_ = end;
        if (token.empty()) return std::nullopt;
        if (std::isdigit(static_cast<unsigned char>(token[0])) == 0) {
            if (token[0] != '$') token = "${" + token + "}";
            const TracedText value = expand_text(TracedText::computed(token), state_);
            if (!value.known()) return std::nullopt;
            token = value.text();
            if (token.empty()) return 0;
        }
        return number(token);
    }

    std::size_t dollar_end() const {
        std::size_t end = at_ + 1;
        if (end < text_.size() && (text_[end] == '{' || text_[end] == '(')) {
            const char left = text_[end], right = left == '{' ? '}' : ')';
            int depth = 0;
            for (; end < text_.size(); ++end) {
                if (text_[end] == left) ++depth;
                if (text_[end] == right && --depth == 0) return end + 1;
            }
            return end;
        }
        while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
            ++end;
        if (end == at_ + 1 && end < text_.size()) ++end;  // $# and its like
        return end;
    }

    static Number number(std::string_view token) {
        const bool negative = token.starts_with("-");
        if (negative) token.remove_prefix(1);
        const bool hex = token.starts_with("0x");
        long long value = 0;
        const auto [end, error] =
            std::from_chars(token.data() + (hex ? 2 : 0), token.data() + token.size(), value, hex ? 16 : 10);
        if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
        return negative ? -value : value;
    }

    std::string_view text_;
    ShellState& state_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

Truth truth(bool value) {
    return value ? Truth::yes : Truth::no;
}
Truth negate(Truth value) {
    return value == Truth::unknown ? value : truth(value == Truth::no);
}

class Test {
public:
    Test(const std::vector<ShellWord>& words, const ShellState& state) : words_(words), state_(state) {}

    Truth run() {
        const Truth value = either();
        return at_ == words_.size() ? value : Truth::unknown;
    }

private:
    const std::string& word(std::size_t ahead = 0) const {
        static const std::string kNone;
        return at_ + ahead < words_.size() ? words_[at_ + ahead].value.text() : kNone;
    }

    Truth either() {
        Truth value = both();
        while (at_ < words_.size() && (word() == "||" || word() == "-o")) {
            ++at_;
            const Truth right = both();
            value = value == Truth::yes || right == Truth::yes           ? Truth::yes
                    : value == Truth::unknown || right == Truth::unknown ? Truth::unknown
                                                                         : Truth::no;
        }
        return value;
    }

    Truth both() {
        Truth value = single();
        while (at_ < words_.size() && (word() == "&&" || word() == "-a")) {
            ++at_;
            const Truth right = single();
            value = value == Truth::no || right == Truth::no             ? Truth::no
                    : value == Truth::unknown || right == Truth::unknown ? Truth::unknown
                                                                         : Truth::yes;
        }
        return value;
    }

    Truth single() {
        if (at_ >= words_.size()) return Truth::no;
        if (word() == "!") {
            ++at_;
            return negate(single());
        }
        if (word() == "(") {
            ++at_;
            const Truth value = either();
            if (word() == ")") ++at_;
            return value;
        }
        const bool operator_next = at_ + 2 < words_.size() && is_binary(word(1));
        if (operator_next) return comparison();
        if (word().size() == 2 && word()[0] == '-' && at_ + 1 < words_.size()) return unary();
        const ShellWord& only = words_[at_++];
        return only.value.known() ? truth(!only.value.text().empty()) : Truth::unknown;
    }

    static bool is_binary(const std::string& op) {
        static const std::vector<std::string> kOps = {"=",   "==",  "!=",  "=~",  "<",   ">",
                                                      "-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
        return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
    }

    Truth unary() {
        const char op = word()[1];
        const ShellWord& operand = words_[at_ + 1];
        at_ += 2;
        if (!operand.value.known()) return Truth::unknown;
        const std::string& text = operand.value.text();
        if (op == 'z') return truth(text.empty());
        if (op == 'n') return truth(!text.empty());
        if (op == 'v') return truth(state_.variables.contains(text));
        std::error_code ignored;
        const auto path = std::filesystem::path(state_.cwd) / text;
        if (op == 'f') return truth(std::filesystem::is_regular_file(path, ignored));
        if (op == 'd') return truth(std::filesystem::is_directory(path, ignored));
        if (op == 'e') return truth(std::filesystem::exists(path, ignored));
        return Truth::unknown;
    }

    Truth comparison() {
        const ShellWord &left = words_[at_], &right = words_[at_ + 2];
        const std::string op = word(1);
        at_ += 3;
        if (!left.value.known() || !right.value.known() || op == "=~") return Truth::unknown;
        const std::string &a = left.value.text(), &b = right.value.text();
        if (op == "=" || op == "==") return truth(shell_match(b, a));
        if (op == "!=") return truth(!shell_match(b, a));
        if (op == "<") return truth(a < b);
        if (op == ">") return truth(a > b);
        ShellState copy = state_;
        const auto x = shell_arithmetic(a, copy), y = shell_arithmetic(b, copy);
        if (!x || !y || a.empty() || b.empty()) return Truth::unknown;
        if (op == "-eq") return truth(*x == *y);
        if (op == "-ne") return truth(*x != *y);
        if (op == "-lt") return truth(*x < *y);
        if (op == "-le") return truth(*x <= *y);
        if (op == "-gt") return truth(*x > *y);
        return truth(*x >= *y);
    }

    const std::vector<ShellWord>& words_;
    const ShellState& state_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<long long> shell_arithmetic(std::string_view expression, ShellState& state) {
    return Arithmetic(expression, state).run();
}

bool shell_match(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (p < pattern.size() && pattern[p] == '[' && pattern.find(']', p) != std::string_view::npos &&
                   pattern.substr(p + 1, pattern.find(']', p) - p - 1).find(text[t]) != std::string_view::npos) {
            p = pattern.find(']', p) + 1;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

Truth shell_test(const std::vector<ShellWord>& words, const ShellState& state) {
    return Test(words, state).run();
}

}  // namespace infrarsi
