#include "core/contract/constraint.h"

#include <cctype>
#include <cmath>

namespace infrarsi {

struct Constraint::Node {
    enum class Kind { literal, knob, word, negate, minus, binary };

    Kind kind = Kind::literal;
    Value value;       // of a literal
    std::string text;  // a knob's or word's name, or the operator
    int column = 0;
    std::shared_ptr<const Node> left, right;
};

namespace {

using Node = Constraint::Node;
using NodePtr = std::shared_ptr<const Node>;

constexpr int kDeepest = 100;
constexpr std::size_t kLongest = 4000;

struct Token {
    enum class Kind { end, number, text, word, symbol };
    Kind kind = Kind::end;
    std::string text;
    int column = 0;
};

bool starts_word(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}

bool continues_word(char c) {
    return starts_word(c) || std::isdigit(static_cast<unsigned char>(c));
}

Unexpected wrong(int column, const std::string& message) {
    return Unexpected(Error(ErrorKind::invalid_input, fmt::format("column {} of the constraint: {}", column, message))
                          .at({"", 0, column}));
}

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    Expected<Token> next() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
        Token token{Token::Kind::end, "", static_cast<int>(at_) + 1};
        if (at_ == text_.size()) return token;
        const char c = text_[at_];
        if (c == '"' || c == '\'') return quoted(token, c);
        if (starts_word(c)) {
            token.kind = Token::Kind::word;
            while (at_ < text_.size() && continues_word(text_[at_])) token.text += text_[at_++];
            return token;
        }
        if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return number(token);
        return symbol(token);
    }

private:
    Expected<Token> quoted(Token token, char quote) {
        token.kind = Token::Kind::text;
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) return wrong(token.column, "a quote that is not closed");
        token.text = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return token;
    }

    Expected<Token> number(Token token) {
        token.kind = Token::Kind::number;
        while (at_ < text_.size() && (continues_word(text_[at_]) || text_[at_] == '.' || is_exponent_sign())) {
            token.text += text_[at_++];
        }
        if (!to_number(value_from_text(token.text))) {
            return wrong(token.column, fmt::format("\"{}\" is no number; quote it if it is text", token.text));
        }
        return token;
    }

    bool is_exponent_sign() const {
        return (text_[at_] == '-' || text_[at_] == '+') && at_ > 0 && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    }

    Expected<Token> symbol(Token token) {
        token.kind = Token::Kind::symbol;
        for (const std::string_view two : {"||", "&&", "==", "!=", "<=", ">="}) {
            if (text_.substr(at_, 2) != two) continue;
            token.text = two;
            at_ += 2;
            return token;
        }
        const char c = text_[at_++];
        if (std::string_view("!<>+-*/%()").find(c) != std::string_view::npos) {
            token.text = c;
            return token;
        }
        if (c == '=') return wrong(token.column, "a single =; write == to compare");
        if (c == '&' || c == '|') return wrong(token.column, fmt::format("a single {0}; write {0}{0}", c));
        return wrong(token.column, fmt::format("\"{}\" means nothing here", c));
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

// Loosest first: implies (to the right), ||, &&, comparisons (no chains), + -, * / %, unary ! and -.
class Parser {
public:
    explicit Parser(std::string_view text) : lexer_(text) {}

    Expected<NodePtr> run() {
        INFRARSI_TRY(advance());
        INFRARSI_ASSIGN(NodePtr node, implication(0));
        if (token_.kind != Token::Kind::end) return unexpected();
        return node;
    }

private:
    Expected<void> advance() {
        INFRARSI_ASSIGN(token_, lexer_.next());
        return {};
    }

    bool is(std::string_view text) const {
        const bool may = token_.kind == Token::Kind::symbol || (token_.kind == Token::Kind::word && text == "implies");
        return may && token_.text == text;
    }

    Unexpected unexpected() const {
        if (token_.kind == Token::Kind::end) return wrong(token_.column, "it ends where a value is expected");
        std::string hint;
        if (token_.text == "and") hint = "; write && for and";
        if (token_.text == "or") hint = "; write || for or";
        if (token_.text == "not") hint = "; write ! for not";
        return wrong(token_.column, fmt::format("\"{}\" is not expected here{}", token_.text, hint));
    }

    static NodePtr binary(std::string text, int column, NodePtr left, NodePtr right) {
        return std::make_shared<Node>(
            Node{Node::Kind::binary, {}, std::move(text), column, std::move(left), std::move(right)});
    }

    Expected<NodePtr> implication(int depth) {
        if (depth > kDeepest) return wrong(token_.column, "it nests too deep");
        INFRARSI_ASSIGN(NodePtr left, level(0, depth));
        if (!is("implies")) return left;
        const int column = token_.column;
        INFRARSI_TRY(advance());
        INFRARSI_ASSIGN(NodePtr right, implication(depth + 1));
        return binary("implies", column, std::move(left), std::move(right));
    }

    // Index of the level at which `token_` is an operator.
    std::optional<std::size_t> operator_level() const {
        static const std::vector<std::vector<std::string_view>> kLevels{
            {"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"}};
        if (token_.kind != Token::Kind::symbol) return std::nullopt;
        for (std::size_t i = 0; i < kLevels.size(); ++i) {
            if (std::find(kLevels[i].begin(), kLevels[i].end(), token_.text) != kLevels[i].end()) return i;
        }
        return std::nullopt;
    }

    Expected<NodePtr> level(std::size_t number, int depth) {
        constexpr std::size_t kComparison = 2, kCount = 5;
        if (number == kCount) return unary(depth);
        INFRARSI_ASSIGN(NodePtr left, level(number + 1, depth));
        int chained = 0;
        while (operator_level() == number) {
            const Token op = token_;
            if (number == kComparison && chained++ > 0) {
                return wrong(op.column, "comparisons do not chain; join two with &&");
            }
            INFRARSI_TRY(advance());
            INFRARSI_ASSIGN(NodePtr right, level(number + 1, depth));
            const bool equality = op.text == "==" || op.text == "!=";
            if (equality && right->kind == Node::Kind::knob) {
                right =
                    std::make_shared<Node>(Node{Node::Kind::word, {}, right->text, right->column, nullptr, nullptr});
            }
            left = binary(op.text, op.column, std::move(left), std::move(right));
        }
        return left;
    }

    Expected<NodePtr> unary(int depth) {
        if (depth > kDeepest) return wrong(token_.column, "it nests too deep");
        if (is("!") || is("-")) {
            const auto kind = is("!") ? Node::Kind::negate : Node::Kind::minus;
            const int column = token_.column;
            INFRARSI_TRY(advance());
            INFRARSI_ASSIGN(NodePtr operand, unary(depth + 1));
            return std::make_shared<Node>(Node{kind, {}, "", column, std::move(operand), nullptr});
        }
        if (is("(")) {
            INFRARSI_TRY(advance());
            INFRARSI_ASSIGN(NodePtr inner, implication(depth + 1));
            if (!is(")")) return wrong(token_.column, "a ) is missing");
            INFRARSI_TRY(advance());
            return inner;
        }
        return primary();
    }

    Expected<NodePtr> primary() {
        Node node;
        node.column = token_.column;
        const bool is_keyword =
            token_.text == "implies" || token_.text == "and" || token_.text == "or" || token_.text == "not";
        if (token_.kind == Token::Kind::number) {
            node.value = value_from_text(token_.text);
        } else if (token_.kind == Token::Kind::text) {
            node.value = token_.text;
        } else if (token_.kind == Token::Kind::word && !is_keyword) {
            const Value value = value_from_text(token_.text);
            if (std::holds_alternative<std::string>(value)) {
                node.kind = Node::Kind::knob;
                node.text = token_.text;
            } else {
                node.value = value;
            }
        } else {
            return unexpected();
        }
        INFRARSI_TRY(advance());
        return std::make_shared<Node>(std::move(node));
    }

    Lexer lexer_;
    Token token_;
};

// Three-valued truth: nothing is "unknown".
using Truth = std::optional<bool>;

class Evaluator {
public:
    explicit Evaluator(const Settings& settings) : settings_(settings) {}

    Expected<Truth> truth(const Node& node) const {
        if (node.kind == Node::Kind::negate) {
            INFRARSI_ASSIGN(const Truth inner, truth(*node.left));
            return inner ? Truth(!*inner) : Truth();
        }
        if (node.kind == Node::Kind::binary) {
            if (node.text == "&&" || node.text == "||" || node.text == "implies") return connect(node);
            if (node.text == "==" || node.text == "!=") return equality(node);
            if (node.text.front() == '<' || node.text.front() == '>') return order(node);
        }
        INFRARSI_ASSIGN(const Value content, value(node));
        if (is_null(content)) return is_plain(node) ? Truth(false) : Truth();
        const auto number = to_number(content);
        if (!number) {
            return wrong(
                node.column,
                fmt::format("the text \"{}\" is neither true nor false; compare it with something", to_text(content)));
        }
        return Truth(*number != 0);
    }

private:
    static bool is_plain(const Node& node) {
        return node.kind == Node::Kind::literal || node.kind == Node::Kind::knob || node.kind == Node::Kind::word;
    }
    static bool is_truth(const Node& node) {
        return node.kind == Node::Kind::negate ||
               (node.kind == Node::Kind::binary && std::string_view("+-*/%").find(node.text) == std::string_view::npos);
    }

    Expected<Truth> connect(const Node& node) const {
        INFRARSI_ASSIGN(Truth left, truth(*node.left));
        INFRARSI_ASSIGN(const Truth right, truth(*node.right));
        if (node.text == "implies" && left) left = !*left;
        const bool deciding = node.text != "&&";  // the value of one side that decides for both
        if (left == deciding || right == deciding) return Truth(deciding);
        if (!left || !right) return Truth();
        return Truth(!deciding);
    }

    Expected<Truth> equality(const Node& node) const {
        INFRARSI_ASSIGN(const Value left, value(*node.left));
        INFRARSI_ASSIGN(const Value right, value(*node.right));
        // null out of arithmetic is unknown; null as a knob's value is a value like any other.
        const bool unknown = (is_null(left) && !is_plain(*node.left)) || (is_null(right) && !is_plain(*node.right));
        if (unknown) return Truth();
        return Truth(same_effect(left, right) == (node.text == "=="));
    }

    Expected<Truth> order(const Node& node) const {
        INFRARSI_ASSIGN(const Value left, value(*node.left));
        INFRARSI_ASSIGN(const Value right, value(*node.right));
        if (is_null(left) || is_null(right)) return Truth();
        INFRARSI_ASSIGN(const double x, number(left, *node.left));
        INFRARSI_ASSIGN(const double y, number(right, *node.right));
        const bool equal = same_effect(Value{x}, Value{y});
        if (node.text == "<") return Truth(x < y && !equal);
        if (node.text == ">") return Truth(x > y && !equal);
        return Truth(equal || (node.text == "<=" ? x < y : x > y));
    }

    static Expected<double> number(const Value& content, const Node& node) {
        const Value read =
            std::holds_alternative<std::string>(content) ? value_from_text(std::get<std::string>(content)) : content;
        if (const auto result = to_number(read)) return *result;
        return wrong(node.column, fmt::format("the text \"{}\" has no order and no arithmetic", to_text(content)));
    }

    Expected<Value> value(const Node& node) const {
        switch (node.kind) {
            case Node::Kind::literal: return node.value;
            case Node::Kind::knob:
            case Node::Kind::word: {
                if (const auto found = settings_.find(node.text); found != settings_.end()) return found->second;
                if (node.kind == Node::Kind::word) return Value{node.text};
                return wrong(node.column, fmt::format("there is no knob {}", node.text));
            }
            case Node::Kind::minus: {
                INFRARSI_ASSIGN(const Value inner, value(*node.left));
                if (is_null(inner)) return Value{};
                INFRARSI_ASSIGN(const double x, number(inner, *node.left));
                return Value{-x};
            }
            default: break;
        }
        if (!is_truth(node)) return arithmetic(node);
        INFRARSI_ASSIGN(const Truth result, truth(node));
        return result ? Value{*result} : Value{};
    }

    // In doubles: exact for the whole numbers that knobs have (up to 2^53).
    Expected<Value> arithmetic(const Node& node) const {
        INFRARSI_ASSIGN(const Value left, value(*node.left));
        INFRARSI_ASSIGN(const Value right, value(*node.right));
        if (is_null(left) || is_null(right)) return Value{};
        INFRARSI_ASSIGN(const double x, number(left, *node.left));
        INFRARSI_ASSIGN(const double y, number(right, *node.right));
        switch (node.text.front()) {
            case '+': return Value{x + y};
            case '-': return Value{x - y};
            case '*': return Value{x * y};
            default: break;
        }
        if (y == 0) return wrong(node.column, "a division by zero");
        return Value{node.text == "/" ? x / y : std::fmod(x, y)};
    }

    const Settings& settings_;
};

void collect(const Node& node, std::map<std::string, int>& columns, std::vector<Constraint::Word>& words) {
    if (node.kind == Node::Kind::knob) columns.try_emplace(node.text, node.column);
    if (node.kind == Node::Kind::binary && node.right->kind == Node::Kind::word) {
        const bool single = node.left->kind == Node::Kind::knob;
        words.push_back({node.right->text, single ? node.left->text : "", node.right->column});
    }
    if (node.left) collect(*node.left, columns, words);
    if (node.right) collect(*node.right, columns, words);
}

}  // namespace

Expected<Constraint> Constraint::parse(std::string_view text) {
    if (text.size() > kLongest) return wrong(1, "it is too long");
    INFRARSI_ASSIGN(NodePtr root, Parser(text).run());
    Constraint constraint;
    constraint.root_ = std::move(root);
    constraint.text_ = text;
    collect(*constraint.root_, constraint.columns_, constraint.words_);
    for (const auto& [name, column] : constraint.columns_) constraint.names_.insert(name);
    return constraint;
}

Expected<bool> Constraint::holds(const Settings& settings) const {
    INFRARSI_ASSIGN(const Truth result, Evaluator(settings).truth(*root_));
    return result.value_or(true);
}

int Constraint::column_of(const std::string& name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() ? 1 : found->second;
}

}  // namespace infrarsi
