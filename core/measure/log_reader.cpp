#include "core/measure/log_reader.h"

#include <array>
#include <cmath>
#include <cstring>

#include "core/measure/log_words.h"

namespace infrarsi {
namespace {

using log_words::in_seconds;
using log_words::is_digit;
using log_words::is_word_char;
using log_words::Key;
using log_words::key_of;
using log_words::take_number;

// Key–value lines in any punctuation: nanoGPT ("iter 20: loss 8.7, time 245.31ms"), build-nanogpt and nanochat
// ("step 20/100 | loss: 8.7 | dt: 612.35ms"), Python dictionaries, "step=12 loss=3.4".
class KeyValueLine {
public:
    explicit KeyValueLine(std::string_view line) : rest_(line) {}

    std::optional<LogReading> read() {
        while (next()) {
            if (evaluation_) {
                return std::nullopt;
            }
        }
        const bool useful = reading_.loss || reading_.step_time_s;
        if (!step_ || !useful) {
            return std::nullopt;
        }
        reading_.step = *step_;
        return reading_;
    }

    [[nodiscard]] std::string_view step_word() const { return step_word_; }

private:
    // One word and, where a value follows it, the value.
    bool next() {
        while (!rest_.empty() && !is_word_char(rest_.front())) {
            rest_.remove_prefix(1);
        }
        if (rest_.empty()) {
            return false;
        }
        if (is_digit(rest_.front()) || rest_.front() == '-') {
            // A number that belongs to no word of ours.
            while (!rest_.empty() && (is_word_char(rest_.front()) || rest_.front() == '.' || rest_.front() == ',')) {
                rest_.remove_prefix(1);
            }
            previous_ = {};
            return true;
        }
        std::size_t size = 0;
        while (size < rest_.size() && is_word_char(rest_[size])) {
            ++size;
        }
        const auto word = rest_.substr(0, size);
        rest_.remove_prefix(size);
        auto key = key_of(word);
        const bool adjacent = !previous_.empty() && word.data() == previous_.data() + previous_.size() + 1;
        if (adjacent) {
            const auto both = key_of({previous_.data(), previous_.size() + 1 + word.size()});
            if (both != Key::none) {
                key = both;
            }
        }
        previous_ = word;
        if (key == Key::evaluation) {
            evaluation_ = true;
        } else if (key != Key::none && key != Key::not_ours) {
            take_value(word, key);
        }
        return true;
    }

    void take_value(std::string_view word, Key key) {
        auto value = rest_;
        while (!value.empty() && std::strchr(" :='\"[(|", value.front()) != nullptr && value.front() != '\0') {
            if (value.front() == '|' || value.front() == '[') {
                return;
            }
            value.remove_prefix(1);
        }
        const auto number = take_number(value);
        if (!number) {
            return;
        }
        rest_ = value;
        previous_ = {};
        store(word, key, *number);
    }

    void store(std::string_view word, Key key, double number) {
        switch (key) {
            case Key::step:
                if (!step_ && number >= 0 && number < 1e15 && number == std::floor(number)) {
                    step_ = static_cast<std::int64_t>(number);
                    step_word_ = word;
                }
                break;
            case Key::loss:
                if (!reading_.loss) {
                    reading_.loss = number;
                }
                break;
            case Key::time:
            case Key::time_ms:
                if (!reading_.step_time_s && number >= 0) {
                    reading_.step_time_s = in_seconds(number, key, rest_);
                }
                break;
            case Key::grad_norm:
                if (!reading_.grad_norm) {
                    reading_.grad_norm = number;
                }
                break;
            case Key::lr:
                if (!reading_.lr) {
                    reading_.lr = number;
                }
                break;
            case Key::tokens: reading_.tokens_per_update = static_cast<std::int64_t>(number); break;
            default: break;
        }
    }

    std::string_view rest_, previous_, step_word_;
    std::optional<std::int64_t> step_;
    bool evaluation_ = false;
    LogReading reading_;
};

// "tokens per iteration will be: 491,520", "total number of tokens per iteration: 655360".
std::optional<std::int64_t> tokens_line(std::string_view line) {
    const auto at = line.find("tokens per iteration");
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    auto rest = line.substr(at);
    const auto colon = rest.find(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    rest.remove_prefix(colon + 1);
    while (rest.starts_with(' ')) {
        rest.remove_prefix(1);
    }
    const auto number = take_number(rest);
    return number && *number > 0 && *number < 1e15 ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

// A tqdm bar in the line: "11/50 [1:55:26<6:49:05, 629.37s/it]"; the last one counts, because bars overwrite each
// other. Bars of loading and tokenising are not training.
std::optional<LogReading> progress_bar(std::string_view line) {
    if (line.find(']') == std::string_view::npos) {
        return std::nullopt;
    }
    const auto bracket = line.rfind("it]") != std::string_view::npos ? line.rfind("it]") : line.rfind("/s]");
    if (bracket == std::string_view::npos) {
        return std::nullopt;
    }
    const auto open = line.rfind('[', bracket);
    if (open == std::string_view::npos || open < 2) {
        return std::nullopt;
    }
    auto start = line.find_last_not_of(' ', open - 1);
    while (start > 0 && (is_digit(line[start - 1]) || line[start - 1] == '/')) {
        --start;
    }
    auto counts = line.substr(start, open - start);
    const auto done = take_number(counts);
    if (!done || !counts.starts_with('/') || line.rfind('|', start) == std::string_view::npos) {
        return std::nullopt;
    }
    for (const std::string_view other :
         {"Map", "Load", "Download", "Fetch", "Generat", "Tokeniz", "Filter", "Eval", "Sav", "Prepar", "Casting"}) {
        if (line.substr(0, start).find(other) != std::string_view::npos) {
            return std::nullopt;
        }
    }
    LogReading reading;
    reading.step = static_cast<std::int64_t>(*done);
    const auto comma = line.find(", ", open);
    if (comma == std::string_view::npos || comma > bracket) {
        return std::nullopt;
    }
    auto rate = line.substr(comma + 2, bracket - comma + 1);
    if (const auto number = take_number(rate)) {
        if (rate.starts_with("s/it")) {
            reading.step_time_s = *number;
        }
        if (rate.starts_with("it/s") && *number > 0) {
            reading.step_time_s = 1.0 / *number;
        }
    }
    return reading.step_time_s ? std::optional(reading) : std::nullopt;
}

class PlainReader final : public LogReader {
public:
    std::optional<LogReading> read(std::string_view line) override {
        if (line.size() > kMaxLine || line.size() < 6) {
            return std::nullopt;
        }
        if (!tokens_ && !locked_) {
            tokens_ = tokens_line(line);
        }
        auto reading = read_modded(line);
        if (!reading) {
            reading = read_key_values(line);
        }
        if (!reading && !locked_) {
            reading = progress_bar(line);
        }
        if (reading && !reading->tokens_per_update) {
            reading->tokens_per_update = tokens_;
        }
        return reading;
    }

private:
    static constexpr std::size_t kMaxLine = 4096;

    // Once a style is known its lines hold its word for the step; before, any of ours.
    [[nodiscard]] bool may_match(std::string_view line) const {
        if (locked_) {
            return line.find(word_) != std::string_view::npos;
        }
        const auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
        return has("oss") || has("LOSS") || has("tep") || has("ter") || has("pdate");
    }

    // A line of another loop that also counts (a tokeniser's "it", an evaluation's "iter") is not followed once a word
    // for the step has matched twice.
    std::optional<LogReading> read_key_values(std::string_view line) {
        if (!may_match(line)) {
            return std::nullopt;
        }
        KeyValueLine parser(line);
        auto reading = parser.read();
        if (!reading) {
            return std::nullopt;
        }
        if (locked_ && word_ != parser.step_word()) {
            return std::nullopt;
        }
        matches_ = word_ == parser.step_word() ? matches_ + 1 : 1;
        word_ = parser.step_word();
        locked_ = locked_ || matches_ >= 2;
        return reading;
    }

    // modded-nanogpt: "step:20/1695 train_time:1210ms step_avg:60.51ms". The average hides the single update, so the
    // time is the growth of train_time.
    std::optional<LogReading> read_modded(std::string_view line) {
        if (!line.starts_with("step:")) {
            return std::nullopt;
        }
        const auto at = line.find(" train_time:");
        if (at == std::string_view::npos) {
            return std::nullopt;
        }
        auto step_text = line.substr(5), time_text = line.substr(at + 12);
        const auto step = take_number(step_text), time_ms = take_number(time_text);
        if (!step || !time_ms || !step_text.starts_with('/')) {
            return std::nullopt;
        }
        LogReading reading;
        reading.step = static_cast<std::int64_t>(*step);
        if (reading.step > modded_step_ && modded_step_ >= 0) {
            reading.step_time_s = (*time_ms - modded_ms_) / 1000.0 / static_cast<double>(reading.step - modded_step_);
        }
        modded_step_ = reading.step;
        modded_ms_ = *time_ms;
        return line.find(" val_loss:") == std::string_view::npos ? std::optional(reading) : std::nullopt;
    }

    std::optional<std::int64_t> tokens_;
    std::string word_;
    int matches_ = 0;
    bool locked_ = false;
    std::int64_t modded_step_ = -1;
    double modded_ms_ = 0;
};

// "[rank0]: ", "[default0]:", "3: " of srun -l, "(worker1, rank=1, pid=27522, ip=…) ", "stderr: ". The size of the
// prefix, 0 when there is none.
std::size_t prefix_size(std::string_view line) {
    const auto bracketed = [&](std::string_view word) -> std::size_t {
        if (!line.starts_with(word)) {
            return 0;
        }
        std::size_t at = word.size();
        while (at < line.size() && is_digit(line[at])) {
            ++at;
        }
        if (at == word.size() || line.substr(at, 2) != "]:") {
            return 0;
        }
        at += 2;
        return at < line.size() && line[at] == ' ' ? at + 1 : at;
    };
    for (const std::string_view word : {"[rank", "[default", "[role", "[trainer", "[worker"}) {
        if (const auto size = bracketed(word)) {
            return size;
        }
    }
    if (line.starts_with("stderr: ") || line.starts_with("stdout: ")) {
        return 8;
    }
    if (line.starts_with("(worker") || line.starts_with("(RayTrain") || line.starts_with("(Trainer")) {
        const auto close = line.find(") ");
        if (close < 100) {
            return close + 2;
        }
    }
    std::size_t at = 0;
    while (at < line.size() && at < 5 && is_digit(line[at])) {
        ++at;
    }
    return at > 0 && line.substr(at, 2) == ": " ? at + 2 : 0;
}

}  // namespace

std::unique_ptr<LogReader> make_log_reader(Stack) {
    return std::make_unique<PlainReader>();
}

std::string clean_line(std::string_view raw) {
    while (raw.ends_with('\r') || raw.ends_with('\n')) {
        raw.remove_suffix(1);
    }
    if (const auto carriage = raw.rfind('\r'); carriage != std::string_view::npos) {
        raw.remove_prefix(carriage + 1);
    }
    std::string text;
    if (raw.find('\x1b') == std::string_view::npos) {
        while (const auto size = prefix_size(raw)) {
            raw.remove_prefix(size);
        }
        text.assign(raw);
        return text;
    }
    text.reserve(raw.size());
    for (std::size_t at = 0; at < raw.size(); ++at) {
        if (raw[at] != '\x1b' || at + 1 >= raw.size() || raw[at + 1] != '[') {
            text += raw[at];
            continue;
        }
        at += 2;
        while (at < raw.size() && !(raw[at] >= '@' && raw[at] <= '~')) {
            ++at;
        }
    }
    while (const auto size = prefix_size(text)) {
        text.erase(0, size);
    }
    return text;
}

}  // namespace infrarsi
