#include "core/measure/log_words.h"

#include <charconv>
#include <cmath>

namespace infrarsi::log_words {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool same_word(std::string_view text, std::string_view lower_case) {
    if (text.size() != lower_case.size()) {
        return false;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (lower(text[i]) != lower_case[i]) {
            return false;
        }
    }
    return true;
}

struct Word {
    std::string_view text;
    Key key;
};

// The last word before a value decides what the value is. Spellings of the common training scripts.
constexpr Word kWords[] = {
    {"step", Key::step},
    {"iter", Key::step},
    {"iteration", Key::step},
    {"update", Key::step},
    {"global_step", Key::step},
    {"global step", Key::step},
    {"it", Key::step},
    {"loss", Key::loss},
    {"train_loss", Key::loss},
    {"train/loss", Key::loss},
    {"training_loss", Key::loss},
    {"ce_loss", Key::loss},
    {"lm_loss", Key::loss},
    {"lm loss", Key::loss},
    {"dt", Key::time},
    {"time", Key::time},
    {"step_time", Key::time},
    {"step time", Key::time},
    {"iter_time", Key::time},
    {"iter time", Key::time},
    {"time/step", Key::time},
    {"time_per_step", Key::time},
    {"sec/step", Key::time},
    {"s/step", Key::time},
    {"s/it", Key::time},
    {"step_time_s", Key::time},
    {"step_s", Key::time},
    {"ms/step", Key::time_ms},
    {"step_ms", Key::time_ms},
    {"dt_ms", Key::time_ms},
    {"time_ms", Key::time_ms},
    {"step_time_ms", Key::time_ms},
    {"norm", Key::grad_norm},
    {"grad_norm", Key::grad_norm},
    {"grad norm", Key::grad_norm},
    {"gnorm", Key::grad_norm},
    {"grad-norm", Key::grad_norm},
    {"gradnorm", Key::grad_norm},
    {"lr", Key::lr},
    {"learning_rate", Key::lr},
    {"learning rate", Key::lr},
    {"tokens_per_update", Key::tokens},
    {"val", Key::evaluation},
    {"eval", Key::evaluation},
    {"validation", Key::evaluation},
    {"test", Key::evaluation},
    {"val_loss", Key::evaluation},
    {"eval_loss", Key::evaluation},
    {"valid_loss", Key::evaluation},
    {"val loss", Key::evaluation},
    {"eval loss", Key::evaluation},
    {"test loss", Key::evaluation},
    {"validation loss", Key::evaluation},
    {"validating", Key::evaluation},
    {"total time", Key::not_ours},
    {"elapsed time", Key::not_ours},
    {"train time", Key::not_ours},
    {"load time", Key::not_ours},
    {"data time", Key::not_ours},
    {"eval time", Key::not_ours},
    {"compile time", Key::not_ours},
    {"aux loss", Key::not_ours},
    {"balance loss", Key::not_ours},
    {"params norm", Key::not_ours},
    {"param norm", Key::not_ours},
    {"weight norm", Key::not_ours},
};

// Where the words of each first letter are in kWords, so that a word is compared with a few and not with all.
struct WordIndex {
    std::array<std::array<std::uint8_t, 16>, 26> of_letter{};  // indices + 1; 0 ends the list
    constexpr WordIndex() {
        for (std::size_t i = 0; i < std::size(kWords); ++i) {
            auto& list = of_letter[static_cast<std::size_t>(kWords[i].text[0] - 'a')];
            std::size_t at = 0;
            while (list[at] != 0) {
                ++at;
            }
            list[at] = static_cast<std::uint8_t>(i + 1);
        }
    }
};
constexpr WordIndex kWordIndex;

}  // namespace

Key key_of(std::string_view word) {
    const char first = word.empty() ? ' ' : lower(word[0]);
    if (first < 'a' || first > 'z') {
        return Key::none;
    }
    for (const auto index : kWordIndex.of_letter[static_cast<std::size_t>(first - 'a')]) {
        if (index == 0) {
            break;
        }
        if (same_word(word, kWords[index - 1].text)) {
            return kWords[index - 1].key;
        }
    }
    return Key::none;
}

std::optional<double> take_number(std::string_view& text) {
    std::string_view rest = text;
    const bool negative = rest.starts_with('-');
    if (negative || rest.starts_with('+')) {
        rest.remove_prefix(1);
    }
    if (rest.size() >= 3 && (same_word(rest.substr(0, 3), "nan") || same_word(rest.substr(0, 3), "inf"))) {
        const bool nan = lower(rest[0]) == 'n';
        if (rest.size() > 3 && (std::isalnum(static_cast<unsigned char>(rest[3])) != 0)) {
            return std::nullopt;
        }
        text = rest.substr(3);
        return nan ? std::nan("") : negative ? -HUGE_VAL : HUGE_VAL;
    }
    if (rest.empty() || !(is_digit(rest[0]) || rest[0] == '.')) {
        return std::nullopt;
    }
    std::array<char, 40> digits{};
    std::size_t size = 0, used = 0;
    for (; used < rest.size() && size + 1 < digits.size(); ++used) {
        const char c = rest[used];
        if (c == ',' && used + 3 < rest.size() && is_digit(rest[used + 1]) && is_digit(rest[used + 2]) &&
            is_digit(rest[used + 3]) && (used + 4 >= rest.size() || !is_digit(rest[used + 4]))) {
            continue;  // thousands
        }
        const bool exponent_sign = (c == '+' || c == '-') && size > 0 && lower(digits[size - 1]) == 'e';
        const bool exponent = lower(c) == 'e' && used + 1 < rest.size() &&
                              (is_digit(rest[used + 1]) || rest[used + 1] == '-' || rest[used + 1] == '+');
        if (!is_digit(c) && c != '.' && !exponent && !exponent_sign) {
            break;
        }
        digits[size++] = c;
    }
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + size, value);
    if (read.ec != std::errc{}) {
        return std::nullopt;
    }
    text = rest.substr(used - (size - static_cast<std::size_t>(read.ptr - digits.data())));
    return negative ? -value : value;
}

double in_seconds(double value, Key key, std::string_view after) {
    while (after.starts_with(' ')) {
        after.remove_prefix(1);
    }
    const auto is_unit = [&](std::string_view unit) {
        return after.starts_with(unit) && (after.size() == unit.size() || !is_word_char(after[unit.size()]));
    };
    if (key == Key::time_ms || is_unit("ms") || is_unit("msec")) {
        return value / 1000.0;
    }
    if (is_unit("us")) {
        return value / 1e6;
    }
    if (is_unit("m") || is_unit("min")) {
        return value * 60.0;
    }
    return value;
}

}  // namespace infrarsi::log_words
