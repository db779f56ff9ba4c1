#include "core/contract/scope.h"
#include "core/text/utf8.h"

namespace infrarsi {

namespace {

using Part = Glob::Part;

constexpr std::size_t kMostAlternatives = 256;

Unexpected wrong(std::string_view pattern, std::string_view why) {
    return fail(ErrorKind::invalid_input, "the pattern \"{}\" {}", pattern, why);
}

// Where the brace at `open` closes, or npos; a backslash hides the next character.
std::size_t closing_brace(std::string_view text, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '{') {
            ++depth;
        } else if (text[i] == '}' && --depth == 0) {
            return i;
        }
    }
    return std::string_view::npos;
}

std::size_t find_unescaped(std::string_view text, char wanted) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == wanted) {
            return i;
        }
    }
    return std::string_view::npos;
}

std::vector<std::string> split_choices(std::string_view inside) {
    std::vector<std::string> choices(1);
    int depth = 0;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        if (inside[i] == '{') ++depth;
        if (inside[i] == '}') --depth;
        if (inside[i] == ',' && depth == 0) {
            choices.emplace_back();
            continue;
        }
        choices.back() += inside[i];
        if (inside[i] == '\\' && i + 1 < inside.size()) choices.back() += inside[++i];
    }
    return choices;
}

// a{b,c}d → abd, acd.
Expected<std::vector<std::string>> expand_braces(std::string_view pattern) {
    std::vector<std::string> done, todo{std::string(pattern)};
    while (!todo.empty()) {
        const std::string text = std::move(todo.back());
        todo.pop_back();
        const std::size_t open = find_unescaped(text, '{');
        if (open == std::string::npos) {
            if (find_unescaped(text, '}') != std::string::npos)
                return wrong(pattern, "closes a brace that it did not open");
            done.push_back(text);
        } else {
            const std::size_t close = closing_brace(text, open);
            if (close == std::string::npos) return wrong(pattern, "opens a brace that it does not close");
            for (const auto& choice : split_choices(std::string_view(text).substr(open + 1, close - open - 1))) {
                todo.push_back(text.substr(0, open) + choice + text.substr(close + 1));
            }
        }
        if (done.size() + todo.size() > kMostAlternatives) {
            return wrong(pattern, fmt::format("has braces for more than {} alternatives", kMostAlternatives));
        }
    }
    return done;
}

// [a-z], [!a-z]; `at` is on the bracket and ends behind the class.
Expected<Part> read_class(std::string_view pattern, std::string_view text, std::size_t& at) {
    Part part;
    part.kind = Part::Kind::one_of;
    ++at;
    if (at < text.size() && (text[at] == '!' || text[at] == '^')) {
        part.negated = true;
        ++at;
    }
    const auto take = [&] {
        if (text[at] == '\\' && at + 1 < text.size()) ++at;
        const std::size_t length = utf8_length(text, at);
        std::string character(text.substr(at, length));
        at += length;
        return character;
    };
    for (bool first = true; at < text.size() && (first || text[at] != ']'); first = false) {
        const std::string low = take();
        std::string high = low;
        if (at + 1 < text.size() && text[at] == '-' && text[at + 1] != ']') {
            ++at;
            high = take();
        }
        if (high < low) return wrong(pattern, fmt::format("has the range {}-{}, which is empty", low, high));
        part.set.emplace_back(low, high);
    }
    if (at >= text.size()) return wrong(pattern, "opens a class with [ that it does not close");
    ++at;
    return part;
}

Expected<std::vector<Part>> read_parts(std::string_view pattern, std::string_view text) {
    std::vector<Part> parts;
    const auto add_literal = [&](std::string_view characters) {
        if (parts.empty() || parts.back().kind != Part::Kind::literal) parts.emplace_back();
        parts.back().text += characters;
    };
    const auto add = [&](Part::Kind kind) {
        parts.emplace_back();
        parts.back().kind = kind;
    };
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '*') {
            const bool starts_folder = at == 0 || text[at - 1] == '/';
            std::size_t stars = 0;
            while (at < text.size() && text[at] == '*') ++at, ++stars;
            if (stars == 1) {
                add(Part::Kind::run);
            } else if (starts_folder && at < text.size() && text[at] == '/') {
                add(Part::Kind::folders);
                ++at;
            } else {
                add(Part::Kind::deep_run);
            }
        } else if (c == '?') {
            add(Part::Kind::one);
            ++at;
        } else if (c == '[') {
            INFRARSI_ASSIGN(Part part, read_class(pattern, text, at));
            parts.push_back(std::move(part));
        } else {
            if (c == '\\' && ++at == text.size()) return wrong(pattern, "ends in a backslash");
            add_literal(text.substr(at++, 1));
        }
    }
    return parts;
}

bool in_class(const Part& part, std::string_view character) {
    const bool inside = std::any_of(part.set.begin(), part.set.end(), [&](const auto& range) {
        return character >= range.first && character <= range.second;
    });
    return inside != part.negated;
}

// Which positions of the path the parts so far can reach: no backtracking, so no pattern is slow.
bool match_parts(const std::vector<Part>& parts, std::string_view path) {
    std::vector<char> reached(path.size() + 1, 0), next(path.size() + 1, 0);
    reached[0] = 1;
    for (const Part& part : parts) {
        std::fill(next.begin(), next.end(), 0);
        bool any = false, running = false;
        for (std::size_t at = 0; at <= path.size(); ++at) {
            const bool here = reached[at] != 0;
            const auto reach = [&](std::size_t to) { next[to] = 1, any = true; };
            switch (part.kind) {
                case Part::Kind::literal:
                    if (here && path.substr(at, part.text.size()) == part.text) reach(at + part.text.size());
                    break;
                case Part::Kind::one:
                case Part::Kind::one_of:
                    if (here && at < path.size() && path[at] != '/') {
                        const std::size_t length = utf8_length(path, at);
                        if (part.kind == Part::Kind::one || in_class(part, path.substr(at, length))) reach(at + length);
                    }
                    break;
                case Part::Kind::run:
                    running = here || (running && path[at - 1] != '/');
                    if (running) reach(at);
                    break;
                case Part::Kind::deep_run:
                    running |= here;
                    if (running) reach(at);
                    break;
                case Part::Kind::folders:
                    if (here || (running && path[at - 1] == '/')) reach(at);
                    running |= here;
                    break;
            }
        }
        if (!any) return false;
        std::swap(reached, next);
    }
    return reached[path.size()] != 0;
}

}  // namespace

Expected<Glob> Glob::parse(std::string_view pattern) {
    std::string_view rest = pattern;
    while (rest.starts_with("./")) rest.remove_prefix(2);
    if (rest.empty() || rest == ".") return wrong(pattern, "is empty; ** stands for every file");
    if (rest.size() > 1000) return wrong(pattern.substr(0, 40), "… is longer than 1000 bytes");
    if (rest.ends_with('/'))
        return wrong(pattern, fmt::format("ends in /; write {}** for everything below it", pattern));
    Glob glob;
    glob.pattern_ = pattern;
    INFRARSI_ASSIGN(const std::vector<std::string> alternatives, expand_braces(rest));
    for (const std::string& text : alternatives) {
        if (text.starts_with('/') || text.starts_with('~')) {
            return wrong(pattern, "is absolute; write it relative to the project's root");
        }
        if (("/" + text + "/").find("/../") != std::string::npos) {
            return wrong(pattern, "climbs out with ..; only files of the project can be named");
        }
        INFRARSI_ASSIGN(std::vector<Part> parts, read_parts(pattern, text));
        if (!parts.empty()) glob.alternatives_.push_back(std::move(parts));
    }
    return glob;
}

bool Glob::matches(std::string_view path) const {
    return std::any_of(alternatives_.begin(), alternatives_.end(), [&](const std::vector<Part>& parts) {
        if (parts.front().kind == Part::Kind::literal && !path.starts_with(parts.front().text)) return false;
        if (parts.back().kind == Part::Kind::literal && !path.ends_with(parts.back().text)) return false;
        return match_parts(parts, path);
    });
}

bool Glob::may_match_below(std::string_view folder) const {
    if (folder.empty()) return true;
    const std::string below = std::string(folder) + '/';
    return std::any_of(alternatives_.begin(), alternatives_.end(), [&](const std::vector<Part>& parts) {
        if (parts.front().kind != Part::Kind::literal) return true;
        const std::string& literal = parts.front().text;
        if (parts.size() == 1) return literal.starts_with(below);
        return literal.starts_with(below) || below.starts_with(literal);
    });
}

bool Glob::names_folder(std::string_view name) const {
    const std::string inside = fmt::format("/{}/", name);
    return std::any_of(alternatives_.begin(), alternatives_.end(), [&](const std::vector<Part>& parts) {
        std::string text = "/";  // wildcards as a character that no name has
        for (const Part& part : parts) {
            text += part.kind == Part::Kind::literal ? part.text : part.kind == Part::Kind::folders ? "\1/" : "\1";
        }
        return text.find(inside) != std::string::npos;
    });
}

}  // namespace infrarsi
