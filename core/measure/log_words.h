#pragma once
// The words and numbers of a training log's lines: which word says that the number after it is a step, a loss or a time
// (the vocabulary of the common training scripts), and the number itself. Used by the log reader only; see
// log_reader.h.

#include <array>
#include <optional>
#include <string_view>

namespace infrarsi::log_words {

enum class Key { none, step, loss, time, time_ms, grad_norm, lr, tokens, evaluation, not_ours };

[[nodiscard]] inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

inline constexpr auto kIsWordChar = [] {
    std::array<bool, 256> table{};
    for (int c = 0; c < 256; ++c) {
        table[static_cast<std::size_t>(c)] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                             (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '-';
    }
    return table;
}();

// Letters, digits, and what joins them into one word: _ / -
[[nodiscard]] inline bool is_word_char(char c) {
    return kIsWordChar[static_cast<unsigned char>(c)];
}

// What the number after `word` is; upper and lower case are the same.
[[nodiscard]] Key key_of(std::string_view word);

// Reads a number at the front of `text` and removes it: "4.25", "1,559,847", "-1e-3", "nan", "inf".
[[nodiscard]] std::optional<double> take_number(std::string_view& text);

// Seconds out of a number and the unit that follows it ("612.35ms"); key time_ms says the unit where none follows.
[[nodiscard]] double in_seconds(double value, Key key, std::string_view after);

}  // namespace infrarsi::log_words
