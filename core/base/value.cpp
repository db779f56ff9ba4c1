#include "core/base/value.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace infrarsi {

bool is_null(const Value& value) {
    return std::holds_alternative<std::monostate>(value);
}

namespace {

std::string double_text(double number) {
    if (std::isnan(number)) return ".nan";
    if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
    std::string text = fmt::format("{}", number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

bool is_yaml_number_start(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

}  // namespace

std::string to_text(const Value& value) {
    struct Visitor {
        std::string operator()(std::monostate) const { return "null"; }
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return double_text(number); }
        std::string operator()(const std::string& text) const { return text; }
    };
    return std::visit(Visitor{}, value);
}

std::optional<double> to_number(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    return std::nullopt;
}

bool same_effect(const Value& a, const Value& b) {
    if (a == b) return true;
    if (is_null(a) || is_null(b)) return false;
    const Value left = std::holds_alternative<std::string>(a) ? value_from_text(std::get<std::string>(a)) : a;
    const Value right = std::holds_alternative<std::string>(b) ? value_from_text(std::get<std::string>(b)) : b;
    if (left == right) return true;
    const auto x = to_number(left);
    const auto y = to_number(right);
    if (!x || !y) return false;
    return std::abs(*x - *y) <= 1e-9 * std::max(std::abs(*x), std::abs(*y));
}

Value value_from_text(std::string_view text) {
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL" || text == "None") return {};
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    if (!is_yaml_number_start(text.front())) return std::string(text);
    const char* begin = text.data() + (text.front() == '+' ? 1 : 0);
    const char* end = text.data() + text.size();
    std::int64_t whole = 0;
    if (auto [at, error] = std::from_chars(begin, end, whole); error == std::errc{} && at == end) return whole;
    double number = 0;
    if (auto [at, error] = std::from_chars(begin, end, number); error == std::errc{} && at == end) return number;
    return std::string(text);
}

nlohmann::json to_json(const Value& value) {
    return std::visit(
        [](const auto& content) -> nlohmann::json {
            if constexpr (std::is_same_v<std::decay_t<decltype(content)>, std::monostate>) {
                return nullptr;
            } else {
                return content;
            }
        },
        value);
}

Expected<Value> value_from_json(const nlohmann::json& json) {
    if (json.is_null()) return Value{};
    if (json.is_boolean()) return Value{json.get<bool>()};
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
        return Value{json.get<double>()};
    }
    if (json.is_number_integer()) return Value{json.get<std::int64_t>()};
    if (json.is_number_float()) return Value{json.get<double>()};
    if (json.is_string()) return Value{json.get<std::string>()};
    return fail(ErrorKind::invalid_input, "a setting must be a single value, not {}", json.type_name());
}

nlohmann::json to_json(const Settings& settings) {
    nlohmann::json json = nlohmann::json::object();
    for (const auto& [name, value] : settings) json[name] = to_json(value);
    return json;
}

Expected<Settings> settings_from_json(const nlohmann::json& json) {
    if (!json.is_object()) return fail(ErrorKind::invalid_input, "settings must be an object of name: value");
    Settings settings;
    for (const auto& [name, item] : json.items()) {
        INFRARSI_ASSIGN(settings[name], value_from_json(item));
    }
    return settings;
}

std::string describe(const Settings& settings) {
    if (settings.empty()) return "reference";
    std::string text;
    for (const auto& [name, value] : settings) {
        if (!text.empty()) text += ' ';
        text += name + '=' + to_text(value);
    }
    return text;
}

}  // namespace infrarsi
