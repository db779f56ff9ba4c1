#include "core/contract/quantities.h"

#include <charconv>
#include <cmath>

namespace infrarsi {

namespace {

std::string_view trim(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

// Takes a non-negative decimal number off the front.
std::optional<double> take_number(std::string_view& text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || !std::isfinite(number) || number < 0 || text.starts_with('-')) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

std::optional<double> seconds_of(char unit) {
    switch (unit) {
        case 's': return 1;
        case 'm': return 60;
        case 'h': return 3600;
        case 'd': return 86400;
        default: return std::nullopt;
    }
}

}  // namespace

Expected<double> parse_duration_s(std::string_view text, BareNumber bare) {
    constexpr std::string_view kForms = "write it as 3600s, 90m, 2h or 1h30m";
    std::string_view rest = trim(text);
    double total = 0;
    double smaller_than = INFINITY;
    bool first = true;
    while (!rest.empty()) {
        const auto number = take_number(rest);
        if (!number) return fail(ErrorKind::invalid_input, "\"{}\" is no duration; {}", text, kForms);
        if (first && rest.empty()) {
            if (bare == BareNumber::refused) {
                return fail(ErrorKind::invalid_input, "the duration {} has no unit; {}", text, kForms);
            }
            rest = "h";
        }
        const auto unit = rest.empty() ? std::nullopt : seconds_of(rest.front());
        if (!unit || *unit >= smaller_than) {
            return fail(ErrorKind::invalid_input, "\"{}\" is no duration; {}", text, kForms);
        }
        smaller_than = *unit;
        rest.remove_prefix(1);
        total += *number * *unit;
        first = false;
    }
    if (total <= 0) return fail(ErrorKind::invalid_input, "a duration must be more than zero, found \"{}\"", text);
    return total;
}

Expected<std::int64_t> parse_count(std::string_view text) {
    std::string_view rest = trim(text);
    const auto number = take_number(rest);
    double factor = 1;
    if (rest == "k" || rest == "K") factor = 1e3;
    if (rest == "m" || rest == "M") factor = 1e6;
    if (rest == "g" || rest == "G" || rest == "b" || rest == "B") factor = 1e9;
    const double count = number.value_or(-1) * factor;
    // 0.1k is 100, up to the last bit of a double.
    if (!number || (factor == 1 && !rest.empty()) || count < 0.5 || count > 9e15 ||
        std::abs(count - std::round(count)) > 1e-6) {
        return fail(ErrorKind::invalid_input, "\"{}\" is no count; write a whole number of at least 1, 500k or 1.5M",
                    text);
    }
    return static_cast<std::int64_t>(std::llround(count));
}

Expected<double> parse_share(std::string_view text) {
    std::string_view rest = trim(text);
    const auto number = take_number(rest);
    const bool percent = rest == "%";
    if (!number || (!percent && !rest.empty()) || *number <= 0 || *number > 100) {
        return fail(ErrorKind::invalid_input,
                    "\"{}\" is no share; write a fraction such as 0.45, or a percentage such as 45", text);
    }
    return percent || *number > 1 ? *number / 100 : *number;
}

}  // namespace infrarsi
