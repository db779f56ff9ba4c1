#include "core/repo/python_literal.h"

#include <cmath>

namespace infrarsi {
namespace {

std::optional<Value> arithmetic(TSNode node, std::string_view text, const std::map<std::string, Value>& globals,
                                const auto& literal) {
    const auto left = literal(field_of(node, "left"), text, globals);
    const auto right = literal(field_of(node, "right"), text, globals);
    const auto a = left ? to_number(*left) : std::nullopt, b = right ? to_number(*right) : std::nullopt;
    if (!a || !b) return std::nullopt;
    const std::string_view op = text_of(field_of(node, "operator"), text);
    double result = 0;
    bool integral = std::holds_alternative<std::int64_t>(*left) && std::holds_alternative<std::int64_t>(*right);
    if (op == "+") {
        result = *a + *b;
    } else if (op == "-") {
        result = *a - *b;
    } else if (op == "*") {
        result = *a * *b;
    } else if (op == "//" && *b != 0) {
        result = std::floor(*a / *b);
    } else if (op == "/" && *b != 0) {
        result = *a / *b;
        integral = false;
    } else if (op == "**") {
        result = std::pow(*a, *b);
        integral = integral && *b >= 0;
    } else {
        return std::nullopt;
    }
    if (integral && std::abs(result) < 9e15) return Value{static_cast<std::int64_t>(result)};
    return Value{result};
}

std::optional<Value> read(TSNode node, std::string_view text, const std::map<std::string, Value>& globals, int depth) {
    if (ts_node_is_null(node) || depth > 50) return std::nullopt;
    const std::string_view type = type_of(node);
    const std::string_view spelled = text_of(node, text);
    const auto deeper = [&](TSNode part, std::string_view t, const std::map<std::string, Value>& g) {
        return read(part, t, g, depth + 1);
    };
    if (type == "integer" || type == "float") {
        std::string digits(spelled);
        std::erase(digits, '_');
        if (digits.starts_with("0x") || digits.starts_with("0X")) {
            return Value{static_cast<std::int64_t>(std::strtoll(digits.c_str() + 2, nullptr, 16))};
        }
        Value value = value_from_text(digits);
        if (!to_number(value)) return std::nullopt;
        if (type == "float") value = *to_number(value);
        return value;
    }
    if (type == "true") return Value{true};
    if (type == "false") return Value{false};
    if (type == "none") return Value{};
    if (type == "string") {
        if (spelled.starts_with('f') || spelled.starts_with('F') || spelled.starts_with('b')) return std::nullopt;
        std::string content;
        for_each_child(node, [&](TSNode part) {
            if (type_of(part) == "string_content") content += text_of(part, text);
        });
        return Value{content};
    }
    if (type == "concatenated_string") {
        std::string content;
        for_each_child(node, [&](TSNode part) {
            const auto value = deeper(part, text, globals);
            if (value) content += to_text(*value);
        });
        return Value{content};
    }
    if (type == "parenthesized_expression") return deeper(ts_node_named_child(node, 0), text, globals);
    if (type == "unary_operator") {
        const auto value = deeper(field_of(node, "argument"), text, globals);
        if (!value || !spelled.starts_with('-')) return value;
        if (const auto* integer = std::get_if<std::int64_t>(&*value)) return Value{-*integer};
        if (const auto* real = std::get_if<double>(&*value)) return Value{-*real};
        return std::nullopt;
    }
    if (type == "binary_operator") return arithmetic(node, text, globals, deeper);
    if (type == "identifier") {
        const auto found = globals.find(std::string(spelled));
        if (found != globals.end()) return found->second;
    }
    return std::nullopt;
}

}  // namespace

std::optional<Value> python_literal(TSNode node, std::string_view text, const std::map<std::string, Value>& globals) {
    return read(node, text, globals, 0);
}

}  // namespace infrarsi
