#pragma once
// YAML as plain values with places. yaml-cpp reads; this tree keeps where each node stands, so that errors can point at
// the user's text and editors can change it in place. Aliases are copied in; merge keys are ordinary keys.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"

namespace infrarsi {

struct YamlEntry;

struct YamlNode {
    enum class Kind { null, scalar, sequence, map };

    Kind kind = Kind::null;
    std::string text;      // of a scalar, unquoted and unfolded
    bool quoted = false;   // a scalar in quotes, a block scalar or one tagged !!str: text whatever it looks like
    bool is_flow = false;  // a collection in brackets
    bool is_alias = false;
    bool is_empty = false;   // a null that nothing was written for (`key:`)
    bool is_tagged = false;  // has an explicit tag
    int line = 0;            // 1-based; of an empty value: of its key
    int column = 0;          // 1-based, in bytes
    std::size_t offset = 0;  // of the place, in the text
    std::vector<YamlNode> items;
    std::vector<YamlEntry> entries;  // in the file's order; a key that stands twice is here twice

    [[nodiscard]] const YamlNode* find(std::string_view key) const;  // the first such entry's value
    // Of a scalar or null: quoted text stays text, else as value_from_text.
    [[nodiscard]] Value value() const;
    [[nodiscard]] Place place(const std::string& path) const { return {path, line, column}; }
};

struct YamlEntry {
    YamlNode key;  // a scalar
    YamlNode value;
};

// One document. invalid_input with line and column: bad UTF-8, control characters, tabs as indentation, syntax, a key
// that is no scalar, more than one document, over `limit_bytes` or 200,000 nodes (aliases counted as often as used).
// An empty text is a null node.
[[nodiscard]] Expected<YamlNode> parse_yaml(std::string_view text, const std::string& path,
                                            std::size_t limit_bytes = 16u << 20);

// "text", "a list", "a mapping", "nothing", "the number 3", "true": what error sentences say was found.
[[nodiscard]] std::string describe(const YamlNode& node);

}  // namespace infrarsi
