#include "core/repo/config_scan.h"

#include <cctype>

namespace infrarsi {
namespace {

class Scanner {
public:
    Scanner(std::string_view text, const std::string& name) : text_(text), name_(name) {}

protected:
    Unexpected broken(std::string_view what) const {
        const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
        const auto line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
        const std::size_t newline = before.rfind('\n');
        const auto column = static_cast<int>(newline == std::string_view::npos ? at_ + 1 : at_ - newline);
        return fail_at(ErrorKind::invalid_input, {name_, line, column}, "{}", what);
    }
    [[nodiscard]] bool done() const { return at_ >= text_.size(); }
    [[nodiscard]] char peek() const { return done() ? '\0' : text_[at_]; }
    [[nodiscard]] std::string indent_of(std::size_t place) const {
        const std::size_t newline = place == 0 ? std::string_view::npos : text_.rfind('\n', place - 1);
        if (newline == std::string_view::npos) return "";
        const std::string_view lead = text_.substr(newline + 1, place - newline - 1);
        if (lead.find_first_not_of(" \t") != std::string_view::npos) return "";
        return "\n" + std::string(lead);
    }
    static std::string join(const std::string& prefix, const std::string& key) {
        return prefix.empty() ? key : prefix + "." + key;
    }

    std::string_view text_;
    const std::string& name_;
    std::size_t at_ = 0;
    ConfigMap map_;
};

class JsonScanner : Scanner {
public:
    using Scanner::Scanner;

    Expected<ConfigMap> run() {
        INFRARSI_TRY(value("", 0));
        skip();
        if (!done()) return broken("text after the end of the JSON value");
        return std::move(map_);
    }

private:
    void skip() {
        while (!done()) {
            if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
                ++at_;
            } else if (text_.substr(at_, 2) == "//") {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (text_.substr(at_, 2) == "/*") {
                const std::size_t close = text_.find("*/", at_);
                at_ = close == std::string_view::npos ? text_.size() : close + 2;
            } else {
                return;
            }
        }
    }

    Expected<void> value(const std::string& key, int depth) {
        skip();
        if (depth > 200) return broken("nested too deeply");
        const std::size_t begin = at_;
        if (peek() == '{') return object(key, depth);
        if (peek() == '[') return array(key, depth);
        if (peek() == '"') {
            INFRARSI_TRY(string());
        } else {
            while (!done() && std::string_view(",]}/ \t\r\n").find(peek()) == std::string_view::npos) ++at_;
            if (at_ == begin) return broken("a value is missing here");
        }
        map_.scalars.push_back({key, begin, at_});
        return {};
    }

    Expected<std::string> string() {
        const std::size_t begin = ++at_;
        while (!done() && peek() != '"' && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
        if (done() || peek() != '"') return broken("this text has no closing quote");
        ++at_;
        return std::string(text_.substr(begin, at_ - begin - 1));
    }

    Expected<void> object(const std::string& key, int depth) {
        ConfigTable table{key, at_ + 1, "", true};
        ++at_;
        for (;;) {
            skip();
            if (peek() == '}') break;
            if (peek() != '"') return broken("expected a key in quotes or a closing brace");
            table.indent = indent_of(at_);
            table.is_empty = false;
            INFRARSI_ASSIGN(const std::string member, string());
            skip();
            if (peek() != ':') return broken("expected a colon after the key");
            ++at_;
            INFRARSI_TRY(value(join(key, member), depth + 1));
            table.insert_at = at_;
            skip();
            if (peek() == ',') {
                ++at_;
            } else if (peek() != '}') {
                return broken("expected a comma or a closing brace");
            }
        }
        ++at_;
        map_.tables.push_back(std::move(table));
        return {};
    }

    Expected<void> array(const std::string& key, int depth) {
        map_.lists.push_back(key);
        ++at_;
        for (int index = 0;; ++index) {
            skip();
            if (peek() == ']') break;
            INFRARSI_TRY(value(join(key, std::to_string(index)), depth + 1));
            skip();
            if (peek() == ',') {
                ++at_;
            } else if (peek() != ']') {
                return broken("expected a comma or a closing bracket");
            }
        }
        ++at_;
        return {};
    }
};

class TomlScanner : Scanner {
public:
    using Scanner::Scanner;

    Expected<ConfigMap> run() {
        map_.tables.push_back({"", 0, "", true});
        for (;;) {
            skip_lines();
            if (done()) return std::move(map_);
            if (peek() == '[') {
                INFRARSI_TRY(header());
            } else {
                INFRARSI_TRY(pair(map_.tables.back().key));
                skip_blanks();
                if (!done() && peek() != '\n' && peek() != '\r' && peek() != '#')
                    return broken("expected the end of the line");
                map_.tables.back().insert_at = std::min(text_.find('\n', at_), text_.size());
                map_.tables.back().is_empty = false;
            }
        }
    }

private:
    void skip_blanks() {
        while (!done() && (peek() == ' ' || peek() == '\t')) ++at_;
    }
    void skip_lines() {
        while (!done()) {
            if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
                ++at_;
            } else if (peek() == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else {
                return;
            }
        }
    }

    Expected<void> header() {
        const bool is_array = text_.substr(at_, 2) == "[[";
        at_ += is_array ? 2 : 1;
        INFRARSI_ASSIGN(std::string key, dotted());
        if (peek() != ']') return broken("expected ] after the table's name");
        at_ += is_array ? 2 : 1;
        if (is_array) {
            int index = 0;
            while (std::any_of(map_.tables.begin(), map_.tables.end(), [&](const ConfigTable& table) {
                return table.key == join(key, std::to_string(index));
            })) {
                ++index;
            }
            key = join(key, std::to_string(index));
        }
        map_.tables.push_back({key, std::min(text_.find('\n', at_), text_.size()), "\n", true});
        return {};
    }

    Expected<std::string> dotted() {
        std::string key;
        for (;;) {
            skip_blanks();
            std::string part;
            if (peek() == '"' || peek() == '\'') {
                const std::size_t begin = at_ + 1;
                INFRARSI_TRY(string());
                part = text_.substr(begin, at_ - begin - 1);
            } else {
                while (!done() &&
                       (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' || peek() == '-')) {
                    part.push_back(text_[at_++]);
                }
            }
            if (part.empty()) return broken("expected a key");
            key = join(key, part);
            skip_blanks();
            if (peek() != '.') return key;
            ++at_;
        }
    }

    Expected<void> string() {
        const char quote = peek();
        const std::string triple(3, quote);
        if (text_.substr(at_, 3) == triple) {
            std::size_t close = at_ + 3;
            while (close < text_.size() && text_.substr(close, 3) != triple) {
                close += quote == '"' && text_[close] == '\\' ? 2 : 1;
            }
            if (close >= text_.size()) return broken("this text has no closing quotes");
            at_ = close + 3;
            while (!done() && peek() == quote) ++at_;
            return {};
        }
        ++at_;
        while (!done() && peek() != quote && peek() != '\n') at_ += quote == '"' && peek() == '\\' ? 2 : 1;
        if (done() || peek() != quote) return broken("this text has no closing quote");
        ++at_;
        return {};
    }

    Expected<void> pair(const std::string& table) {
        INFRARSI_ASSIGN(const std::string key, dotted());
        if (peek() != '=') return broken("expected = after the key");
        ++at_;
        skip_blanks();
        return value(join(table, key), 0);
    }

    Expected<void> value(const std::string& key, int depth) {
        if (depth > 200) return broken("nested too deeply");
        const std::size_t begin = at_;
        if (peek() == '[') return array(key, depth);
        if (peek() == '{') {
            ++at_;
            skip_lines();
            while (!done() && peek() != '}') {
                INFRARSI_TRY(pair(key));
                skip_lines();
                if (peek() == ',') ++at_;
                skip_lines();
            }
            if (done()) return broken("this table is not closed");
            ++at_;
            return {};
        }
        if (peek() == '"' || peek() == '\'') {
            INFRARSI_TRY(string());
        } else {
            while (!done() && std::string_view(",]}#\r\n").find(peek()) == std::string_view::npos) ++at_;
            while (at_ > begin && (text_[at_ - 1] == ' ' || text_[at_ - 1] == '\t')) --at_;
            if (at_ == begin) return broken("a value is missing here");
        }
        map_.scalars.push_back({key, begin, at_});
        return {};
    }

    Expected<void> array(const std::string& key, int depth) {
        map_.lists.push_back(key);
        ++at_;
        for (int index = 0;; ++index) {
            skip_lines();
            if (done()) return broken("this array is not closed");
            if (peek() == ']') break;
            INFRARSI_TRY(value(join(key, std::to_string(index)), depth + 1));
            skip_lines();
            if (peek() == ',') {
                ++at_;
            } else if (peek() != ']') {
                return broken("expected a comma or a closing bracket");
            }
        }
        ++at_;
        return {};
    }
};

}  // namespace

Expected<ConfigMap> scan_json(std::string_view text, const std::string& name) {
    return JsonScanner(text, name).run();
}
Expected<ConfigMap> scan_toml(std::string_view text, const std::string& name) {
    return TomlScanner(text, name).run();
}

}  // namespace infrarsi
