#include "core/contract/yaml_edit.h"

#include <charconv>

#include "core/base/yaml_node.h"

namespace infrarsi {

namespace {

std::string spell(const std::vector<std::string>& path) {
    return fmt::format("{}", fmt::join(path, "."));
}

// What stands at a path, and what is around it.
struct Found {
    const YamlNode* node = nullptr;    // null when only the last key is missing
    const YamlNode* parent = nullptr;  // the collection it is in
    const YamlNode* key = nullptr;     // of the entry, in a mapping
    const YamlNode* parent_key = nullptr;
    bool in_flow = false;
};

Expected<const YamlEntry*> only_entry(const YamlNode& map, const std::string& key,
                                      const std::vector<std::string>& path) {
    const YamlEntry* found = nullptr;
    for (const auto& entry : map.entries) {
        if (entry.key.text != key) continue;
        if (found)
            return fail_at(ErrorKind::invalid_input, entry.key.place(""), "the key {} of {} stands twice", key,
                           spell(path));
        found = &entry;
    }
    return found;
}

Expected<Found> find(const YamlNode& root, const std::vector<std::string>& path) {
    if (path.empty()) return fail(ErrorKind::invalid_input, "an empty path names no scalar");
    Found found{&root};
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
        const bool last = depth + 1 == path.size();
        const YamlNode& here = *found.node;
        found.parent = &here;
        found.parent_key = found.key;
        found.in_flow |= here.is_flow;
        if (here.is_alias) {
            return fail_at(ErrorKind::invalid_input, here.place(""), "{} is under an alias; write the value out there",
                           spell(path));
        }
        if (here.kind == YamlNode::Kind::map) {
            INFRARSI_ASSIGN(const YamlEntry* entry, only_entry(here, path[depth], path));
            if (!entry && !last)
                return fail(ErrorKind::not_found, "there is no {} on the way to {}", path[depth], spell(path));
            found.key = entry ? &entry->key : nullptr;
            found.node = entry ? &entry->value : nullptr;
        } else if (here.kind == YamlNode::Kind::sequence) {
            std::size_t index = 0;
            const std::string& text = path[depth];
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
            if (error != std::errc{} || end != text.data() + text.size() || index >= here.items.size()) {
                return fail(ErrorKind::not_found, "the list on the way to {} has no item {}", spell(path), text);
            }
            found.key = nullptr;
            found.node = &here.items[index];
        } else if (here.kind == YamlNode::Kind::null && last) {
            found.key = nullptr;
            found.node = nullptr;
        } else {
            return fail(ErrorKind::not_found, "{} stands on the way to {}, not a mapping", describe(here), spell(path));
        }
    }
    return found;
}

std::size_t line_end(std::string_view text, std::size_t at) {
    const auto newline = text.find('\n', at);
    const std::size_t end = newline == std::string_view::npos ? text.size() : newline;
    return end > at && text[end - 1] == '\r' ? end - 1 : end;
}

std::size_t next_line(std::string_view text, std::size_t at) {
    const auto newline = text.find('\n', at);
    return newline == std::string_view::npos ? text.size() : newline + 1;
}

bool is_blank_line(std::string_view text, std::size_t start) {
    const auto content = text.find_first_not_of(" \t\r", start);
    return content == std::string_view::npos || text[content] == '\n';
}

std::size_t indent_of(std::string_view text, std::size_t start) {
    const auto content = text.find_first_not_of(' ', start);
    return (content == std::string_view::npos ? text.size() : content) - start;
}

std::size_t quoted_end(std::string_view text, std::size_t start) {
    const char quote = text[start];
    for (std::size_t i = start + 1; i < text.size(); ++i) {
        if (quote == '"' && text[i] == '\\') {
            ++i;
        } else if (text[i] == quote) {
            if (quote == '"' || i + 1 >= text.size() || text[i + 1] != '\'') return i + 1;
            ++i;
        }
    }
    return text.size();
}

std::size_t plain_end(std::string_view text, std::size_t start, bool in_flow) {
    std::size_t end = line_end(text, start);
    for (std::size_t i = start; i < end; ++i) {
        const bool comment = text[i] == '#' && i > start && (text[i - 1] == ' ' || text[i - 1] == '\t');
        const bool colon = text[i] == ':' && (i + 1 == end || text[i + 1] == ' ' || (in_flow && text[i + 1] == ','));
        const bool flow_end = in_flow && std::string_view(",[]{}").find(text[i]) != std::string_view::npos;
        if (comment || colon || flow_end) end = i;
    }
    while (end > start && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    return end;
}

// Lines below a block scalar's header that are blank or deeper than what it belongs to.
std::size_t block_end(std::string_view text, std::size_t start, std::size_t parent_indent) {
    std::size_t end = line_end(text, start);
    for (std::size_t line = next_line(text, start); line < text.size(); line = next_line(text, line)) {
        if (is_blank_line(text, line)) continue;
        if (indent_of(text, line) <= parent_indent) break;
        end = line_end(text, line);
    }
    return end;
}

Expected<std::size_t> scalar_end(std::string_view text, const Found& found) {
    const YamlNode& node = *found.node;
    const char first = text[node.offset];
    if (first == '&' || first == '*' || first == '!' || node.is_alias || node.is_tagged) {
        return fail_at(ErrorKind::invalid_input, node.place(""),
                       "an anchor, alias or tag stands here; edit it by hand");
    }
    if (first == '"' || first == '\'') return quoted_end(text, node.offset);
    if (!found.in_flow && (first == '|' || first == '>')) {
        const YamlNode& owner = found.key ? *found.key : *found.parent;
        return block_end(text, node.offset, static_cast<std::size_t>(owner.column - 1));
    }
    const std::size_t end = plain_end(text, node.offset, found.in_flow);
    if (node.kind == YamlNode::Kind::scalar && text.substr(node.offset, end - node.offset) != node.text) {
        return fail_at(ErrorKind::invalid_input, node.place(""),
                       "the text here goes over several lines; put it in quotes first");
    }
    return end;
}

std::string spliced(std::string_view text, std::size_t begin, std::size_t end, std::string_view replacement) {
    std::string result(text.substr(0, begin));
    result += replacement;
    result += text.substr(end);
    return result;
}

std::string newline_of(std::string_view text) {
    const auto newline = text.find('\n');
    return newline != std::string_view::npos && newline > 0 && text[newline - 1] == '\r' ? "\r\n" : "\n";
}

// Behind the colon of a key.
std::size_t behind_colon(std::string_view text, const YamlNode& key) {
    const std::size_t end = text[key.offset] == '"' || text[key.offset] == '\'' ? quoted_end(text, key.offset)
                                                                                : key.offset + key.text.size();
    const auto colon = text.find(':', end);
    return colon == std::string_view::npos ? end : colon + 1;
}

// The end of the last line with content that belongs to a block entry.
std::size_t entry_end(std::string_view text, const YamlEntry& entry) {
    const auto indent = static_cast<std::size_t>(entry.key.column - 1);
    std::size_t end = line_end(text, entry.key.offset);
    const bool holds_list = entry.value.kind == YamlNode::Kind::sequence && !entry.value.is_flow;
    for (std::size_t line = next_line(text, entry.key.offset); line < text.size(); line = next_line(text, line)) {
        if (is_blank_line(text, line)) continue;
        const std::size_t depth = indent_of(text, line);
        const char first = text[line + depth];
        if (first == '#') continue;
        const bool item = holds_list && depth == indent && first == '-';
        if (depth <= indent && !item) break;
        end = line_end(text, line);
    }
    return end;
}

// Where a flow mapping closes; strings and comments are stepped over.
std::size_t flow_close(std::string_view text, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
        const char before = i > 0 ? text[i - 1] : ' ';
        if ((text[i] == '"' || text[i] == '\'') && std::string_view(" ,[{:\n").find(before) != std::string_view::npos) {
            i = quoted_end(text, i) - 1;
        } else if (text[i] == '#' && (before == ' ' || before == '\n')) {
            i = line_end(text, i);
        } else if (text[i] == '{' || text[i] == '[') {
            ++depth;
        } else if ((text[i] == '}' || text[i] == ']') && --depth == 0) {
            return i;
        }
    }
    return text.size();
}

Expected<std::string> add_key(std::string_view text, const Found& found, const std::string& name,
                              const std::string& scalar) {
    const YamlNode& parent = *found.parent;
    const std::string line = fmt::format("{}: {}", yaml_scalar(Value{name}), scalar);
    const std::string newline = newline_of(text);
    if (parent.kind == YamlNode::Kind::null) {
        if (!found.parent_key) {
            const bool complete = text.empty() || text.ends_with('\n');
            return std::string(text) + (complete ? "" : newline) + line + newline;
        }
        if (!parent.is_empty || found.in_flow) {
            return fail_at(ErrorKind::invalid_input, parent.place(""), "null stands where a mapping is wanted");
        }
        const std::string indent(static_cast<std::size_t>(found.parent_key->column - 1) + 2, ' ');
        const std::size_t at = line_end(text, found.parent_key->offset);
        return spliced(text, at, at, newline + indent + line);
    }
    if (parent.is_flow) {
        const std::size_t close = flow_close(text, parent.offset);
        std::size_t at = close;
        while (at > 0 && std::string_view(" \t\r\n").find(text[at - 1]) != std::string_view::npos) --at;
        const char last = text[at - 1];
        return spliced(text, at, at, (last == '{' ? "" : last == ',' ? " " : ", ") + line);
    }
    const std::size_t at = entry_end(text, parent.entries.back());
    const std::string indent(static_cast<std::size_t>(parent.entries.back().key.column - 1), ' ');
    return spliced(text, at, at, newline + indent + line);
}

// Equal in meaning; places and spelling do not count.
bool same_meaning(const YamlNode& a, const YamlNode& b) {
    if (a.kind != b.kind || a.value() != b.value()) return false;
    if (a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) return false;
    for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (!same_meaning(a.items[i], b.items[i])) return false;
    }
    for (std::size_t i = 0; i < a.entries.size(); ++i) {
        if (a.entries[i].key.text != b.entries[i].key.text || !same_meaning(a.entries[i].value, b.entries[i].value))
            return false;
    }
    return true;
}

void assign(YamlNode& node, const Value& value) {
    node = YamlNode{};
    if (is_null(value)) return;
    node.kind = YamlNode::Kind::scalar;
    node.text = to_text(value);
    node.quoted = std::holds_alternative<std::string>(value);
}

// The tree as the edit means it.
YamlNode edited(const YamlNode& root, const std::vector<std::string>& path, const Value& value) {
    YamlNode result = root;
    YamlNode* at = &result;
    for (const auto& step : path) {
        if (at->kind == YamlNode::Kind::sequence) {
            at = &at->items[std::stoul(step)];
            continue;
        }
        at->kind = YamlNode::Kind::map;  // an empty value becomes one
        const auto entry = std::find_if(at->entries.begin(), at->entries.end(),
                                        [&](const YamlEntry& e) { return e.key.text == step; });
        if (entry == at->entries.end()) {
            at->entries.emplace_back();
            at->entries.back().key.text = step;
            at = &at->entries.back().value;
        } else {
            at = &entry->value;
        }
    }
    assign(*at, value);
    return result;
}

bool looks_plain(const std::string& text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/'; };
    const auto inner = [&](char c) {
        return letter(c) || (c >= '0' && c <= '9') || std::string_view(" .-+=@%").find(c) != std::string_view::npos;
    };
    if (text.empty() || !letter(text.front()) || text.back() == ' ') return false;
    if (!std::all_of(text.begin(), text.end(), inner)) return false;
    if (!std::holds_alternative<std::string>(value_from_text(text))) return false;
    std::string lower = text;
    for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    // YAML 1.1 readers take these for true and false, and 1.2 readers take some for null.
    static const std::vector<std::string> kWords{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"};
    return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

}  // namespace

std::string yaml_scalar(const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return to_text(value);
    if (looks_plain(*text)) return *text;
    std::string quoted = "\"";
    for (const char c : *text) {
        switch (c) {
            case '"': quoted += "\\\""; break;
            case '\\': quoted += "\\\\"; break;
            case '\n': quoted += "\\n"; break;
            case '\t': quoted += "\\t"; break;
            case '\r': quoted += "\\r"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                    quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
                } else {
                    quoted += c;
                }
        }
    }
    return quoted + '"';
}

Expected<Value> get_yaml_scalar(std::string_view text, const std::vector<std::string>& path) {
    INFRARSI_ASSIGN(const YamlNode root, parse_yaml(text, ""));
    INFRARSI_ASSIGN(const Found found, find(root, path));
    if (!found.node) return fail(ErrorKind::not_found, "there is no {}", spell(path));
    if (found.node->kind == YamlNode::Kind::map || found.node->kind == YamlNode::Kind::sequence) {
        return fail_at(ErrorKind::invalid_input, found.node->place(""), "{} is {}, not a single value", spell(path),
                       describe(*found.node));
    }
    return found.node->value();
}

Expected<std::string> set_yaml_scalar(std::string_view text, const std::vector<std::string>& path, const Value& value) {
    INFRARSI_ASSIGN(const YamlNode root, parse_yaml(text, ""));
    INFRARSI_ASSIGN(const Found found, find(root, path));
    const std::string scalar = yaml_scalar(value);
    std::string result;
    if (!found.node) {
        INFRARSI_ASSIGN(result, add_key(text, found, path.back(), scalar));
    } else if (found.node->kind == YamlNode::Kind::map || found.node->kind == YamlNode::Kind::sequence) {
        return fail_at(ErrorKind::invalid_input, found.node->place(""), "{} is {}, not a single value", spell(path),
                       describe(*found.node));
    } else if (found.node->is_empty) {
        if (!found.key)
            return fail_at(ErrorKind::invalid_input, found.node->place(""), "{} is an empty item; edit it by hand",
                           spell(path));
        const std::size_t at = behind_colon(text, *found.key);
        result = spliced(text, at, at, " " + scalar);
    } else {
        INFRARSI_ASSIGN(const std::size_t end, scalar_end(text, found));
        result = spliced(text, found.node->offset, end, scalar);
    }
    const auto after = parse_yaml(result, "");
    if (!after || !same_meaning(*after, edited(root, path, value))) {
        return fail(ErrorKind::invalid_input,
                    "{} cannot be edited in place without changing something else; edit it by hand", spell(path));
    }
    return result;
}

}  // namespace infrarsi
