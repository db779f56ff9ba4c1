#include "core/base/yaml_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "core/text/utf8.h"

namespace infrarsi {

namespace {

constexpr std::size_t kMostNodes = 200'000;
constexpr int kDeepest = 100;  // aliases of aliases can nest where the parser's own guard does not see it
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kStringTag = "tag:yaml.org,2002:str";

// Thrown through yaml-cpp's parser and caught in parse_yaml.
struct Refused {
    YAML::Mark mark;
    std::string message;
};

bool spells_null(std::string_view text) {
    static constexpr std::string_view kNulls[] = {"~", "null", "Null", "NULL"};
    for (const auto word : kNulls) {
        if (!text.starts_with(word)) continue;
        const std::string_view rest = text.substr(word.size());
        if (rest.empty() || std::string_view(" \t\r\n,]}#").find(rest.front()) != std::string_view::npos) return true;
    }
    return false;
}

// yaml-cpp 0.7 takes the end of the file for the closing quote.
bool is_closed(std::string_view text, std::size_t start) {
    const char quote = text[start];
    for (std::size_t i = start + 1; i < text.size(); ++i) {
        if (quote == '"' && text[i] == '\\') {
            ++i;
        } else if (text[i] == quote) {
            if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return true;
            ++i;
        }
    }
    return false;
}

class TreeBuilder final : public YAML::EventHandler {
public:
    explicit TreeBuilder(std::string_view text, std::size_t skipped) : text_(text), skipped_(skipped) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) throw Refused{mark, "a second document starts here; keep one in the file"};
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        YamlNode node = make(YamlNode::Kind::null, mark);
        node.is_empty = !spells_null(text_.substr(std::min(node.offset, text_.size())));
        const YamlNode* key = open_key();
        // yaml-cpp places an empty value at whatever token comes next.
        if (key && !node.is_empty && node.line > key->line && node.column <= key->column) node.is_empty = true;
        if (key && node.is_empty) {
            node.line = key->line;
            node.column = key->column;
            node.offset = key->offset;
        }
        remember(anchor, node);
        add(std::move(node));
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        YamlNode node = make(YamlNode::Kind::scalar, mark);
        node.text = value;
        node.quoted = tag == "!" || tag == kStringTag;
        if (tag == "!" && node.offset < text_.size() &&
            std::string_view("\"'").find(text_[node.offset]) != std::string_view::npos &&
            !is_closed(text_, node.offset)) {
            throw Refused{mark, "a quote opens here and is not closed"};
        }
        read_tag(node, tag, mark);
        remember(anchor, node);
        add(std::move(node));
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) throw Refused{mark, "an alias inside the node that it names"};
        YamlNode node = found->second;
        const YamlNode at = make(node.kind, mark);
        node.line = at.line;
        node.column = at.column;
        node.offset = at.offset;
        node.is_alias = true;
        count(node, mark, 0);
        add(std::move(node));
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value style) override {
        open(YamlNode::Kind::sequence, mark, tag, anchor, style);
    }
    void OnSequenceEnd() override { close(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value style) override {
        open(YamlNode::Kind::map, mark, tag, anchor, style);
    }
    void OnMapEnd() override { close(); }

    YamlNode take() { return std::move(root_); }

private:
    struct Frame {
        YamlNode node;
        YAML::anchor_t anchor = 0;
        std::optional<YamlNode> key;
    };

    YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) const {
        YamlNode node;
        node.kind = kind;
        node.line = mark.line + 1;
        node.column = mark.column + 1;
        node.offset = static_cast<std::size_t>(std::max(mark.pos, 0)) + skipped_;
        return node;
    }

    static void read_tag(YamlNode& node, const std::string& tag, const YAML::Mark& mark) {
        if (tag.empty() || tag == "?" || tag == "!") return;
        node.is_tagged = true;
        static constexpr std::string_view kCore[] = {"str", "int", "float", "bool", "null", "seq", "map"};
        for (const auto name : kCore) {
            if (tag == "tag:yaml.org,2002:" + std::string(name)) return;
        }
        throw Refused{mark, "the tag " + tag + " means nothing here; remove it"};
    }

    const YamlNode* open_key() const {
        if (frames_.empty() || !frames_.back().key) return nullptr;
        return &*frames_.back().key;
    }

    void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
              YAML::EmitterStyle::value style) {
        YamlNode node = make(kind, mark);
        node.is_flow = style == YAML::EmitterStyle::Flow;
        read_tag(node, tag, mark);
        frames_.push_back({std::move(node), anchor, std::nullopt});
    }

    void close() {
        Frame frame = std::move(frames_.back());
        frames_.pop_back();
        remember(frame.anchor, frame.node);
        add(std::move(frame.node));
    }

    void remember(YAML::anchor_t anchor, const YamlNode& node) {
        if (anchor != 0) anchors_[anchor] = node;
    }

    void count(const YamlNode& node, const YAML::Mark& mark, int depth) {
        if (++nodes_ > kMostNodes)
            throw Refused{mark, fmt::format("aliases blow this file up to over {} nodes", kMostNodes)};
        if (depth > kDeepest) throw Refused{mark, fmt::format("aliases nest deeper than {} levels", kDeepest)};
        for (const auto& item : node.items) count(item, mark, depth + 1);
        for (const auto& entry : node.entries) count(entry.value, mark, depth + 1);
    }

    void add(YamlNode node) {
        if (!node.is_alias && ++nodes_ > kMostNodes) {
            throw Refused{mark_of(node), fmt::format("the file has over {} nodes", kMostNodes)};
        }
        if (frames_.empty()) {
            root_ = std::move(node);
            return;
        }
        Frame& frame = frames_.back();
        if (frame.node.kind == YamlNode::Kind::sequence) {
            frame.node.items.push_back(std::move(node));
        } else if (frame.key) {
            frame.node.entries.push_back({std::move(*frame.key), std::move(node)});
            frame.key.reset();
        } else {
            // `null: 1` has a key that reads as null; it is text as every key is.
            if (node.kind == YamlNode::Kind::null && !node.is_empty) {
                node.kind = YamlNode::Kind::scalar;
                node.text = "null";
            }
            if (node.kind != YamlNode::Kind::scalar) throw Refused{mark_of(node), "a key must be plain text"};
            frame.key = std::move(node);
        }
    }

    static YAML::Mark mark_of(const YamlNode& node) {
        YAML::Mark mark;
        mark.line = node.line - 1;
        mark.column = node.column - 1;
        return mark;
    }

    std::string_view text_;
    std::size_t skipped_ = 0;  // bytes of a byte-order mark
    int documents_ = 0;
    std::size_t nodes_ = 0;
    YamlNode root_;
    std::vector<Frame> frames_;
    std::map<YAML::anchor_t, YamlNode> anchors_;
};

Place place_of_offset(std::string_view text, std::size_t offset, const std::string& path) {
    const std::string_view before = text.substr(0, offset);
    const auto newline = before.rfind('\n');
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    return {path, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
            static_cast<int>(offset - start) + 1};
}

// What yaml-cpp would misread, or refuse with a sentence that helps nobody.
Expected<void> check_bytes(std::string_view text, const std::string& path) {
    if (const auto bad = first_invalid_utf8(text)) {
        return fail_at(ErrorKind::invalid_input, place_of_offset(text, *bad, path),
                       "not UTF-8 text (byte 0x{:02x}); save the file as UTF-8",
                       static_cast<unsigned char>(text[*bad]));
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte >= 0x20 && byte != 0x7f) continue;
        if (byte == '\n' || byte == '\r') continue;
        if (byte != '\t') {
            return fail_at(ErrorKind::invalid_input, place_of_offset(text, i, path),
                           "control character 0x{:02x}; remove it", byte);
        }
        const bool starts_line = i == 0 || text[i - 1] == '\n';
        const auto rest = text.find_first_not_of(" \t\r", i);
        const bool blank = rest == std::string_view::npos || text[rest] == '\n' || text[rest] == '#';
        if (starts_line && !blank) {
            return fail_at(ErrorKind::invalid_input, place_of_offset(text, i, path),
                           "a tab as indentation, which YAML forbids; use spaces");
        }
    }
    return {};
}

bool is_tab_indented(std::string_view text, int line) {
    std::size_t start = 0;
    for (int i = 1; i < line && start != std::string_view::npos; ++i) {
        start = text.find('\n', start);
        if (start != std::string_view::npos) ++start;
    }
    if (start == std::string_view::npos) return false;
    const auto end = text.find_first_not_of(" \t", start);
    return text.substr(start, end == std::string_view::npos ? end : end - start).find('\t') != std::string_view::npos;
}

std::string syntax_hint(std::string_view text, const std::string& reason, int line) {
    if (is_tab_indented(text, line)) return "; the line is indented with a tab, use spaces";
    if (reason == "illegal map value") return "; put quotes around a value that contains \": \"";
    if (reason.starts_with("end of map not found")) return "; check the indentation of this line";
    return "";
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
    for (const auto& entry : entries) {
        if (entry.key.text == key) return &entry.value;
    }
    return nullptr;
}

Value YamlNode::value() const {
    if (kind != Kind::scalar) return {};
    if (quoted) return text;
    return value_from_text(text);
}

Expected<YamlNode> parse_yaml(std::string_view text, const std::string& path, std::size_t limit_bytes) {
    if (text.size() > limit_bytes) {
        return fail_at(ErrorKind::invalid_input, {path}, "{} bytes are more than a file of this kind may have ({} KiB)",
                       text.size(), limit_bytes >> 10);
    }
    INFRARSI_TRY(check_bytes(text, path));
    const std::size_t skipped = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    std::istringstream stream{std::string(text.substr(skipped))};
    TreeBuilder builder(text, skipped);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const Refused& refused) {
        return fail_at(ErrorKind::invalid_input, {path, refused.mark.line + 1, refused.mark.column + 1}, "{}",
                       refused.message);
    } catch (const YAML::Exception& error) {
        const int line = error.mark.line + 1;
        return fail_at(ErrorKind::invalid_input, {path, line, error.mark.column + 1}, "not valid YAML: {}{}", error.msg,
                       syntax_hint(text, error.msg, line));
    } catch (const std::exception& error) {
        return fail_at(ErrorKind::invalid_input, {path}, "not valid YAML: {}", error.what());
    }
    return builder.take();
}

std::string describe(const YamlNode& node) {
    switch (node.kind) {
        case YamlNode::Kind::null: return "nothing";
        case YamlNode::Kind::sequence: return "a list";
        case YamlNode::Kind::map: return "a mapping";
        case YamlNode::Kind::scalar: break;
    }
    const Value value = node.value();
    if (std::holds_alternative<std::string>(value)) {
        const std::string& text = std::get<std::string>(value);
        return fmt::format("the text \"{}\"", text.size() <= 60 ? text : text.substr(0, 57) + "…");
    }
    if (std::holds_alternative<bool>(value)) return to_text(value);
    if (is_null(value)) return "nothing";
    return "the number " + to_text(value);
}

}  // namespace infrarsi
