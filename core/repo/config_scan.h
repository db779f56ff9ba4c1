#pragma once
// Where the scalars of a JSON or TOML text stand. Part of config_file.

#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"

namespace infrarsi {

struct ConfigSpot {
    std::string key;
    std::size_t begin = 0, end = 0;  // the scalar's bytes, with its quotes
};

struct ConfigTable {
    std::string key;            // "" is the root
    std::size_t insert_at = 0;  // where a further member goes
    std::string indent;         // of its members, with the newline; empty: on the same line
    bool is_empty = true;
};

struct ConfigMap {
    std::vector<ConfigSpot> scalars;
    std::vector<ConfigTable> tables;
    std::vector<std::string> lists;  // keys that hold an array (its scalars are among the scalars in JSON)
};

// JSON with comments and trailing commas allowed. invalid_input with line and column.
[[nodiscard]] Expected<ConfigMap> scan_json(std::string_view text, const std::string& name);

// TOML 1.0; arrays and inline tables are kept whole, apart from an inline table's scalars. invalid_input likewise.
[[nodiscard]] Expected<ConfigMap> scan_toml(std::string_view text, const std::string& name);

}  // namespace infrarsi
