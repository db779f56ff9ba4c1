#pragma once
// Scalars of YAML, JSON and TOML configuration files by dotted path (`model.recompute`), read and edited in place: all
// bytes but the scalar's stay as they are.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"

namespace infrarsi {

enum class ConfigFormat { yaml, json, toml };

// By the file's extension; nothing for another one.
[[nodiscard]] std::optional<ConfigFormat> config_format(std::string_view path);

struct ConfigScalar {
    std::string key;  // "model.layers.0.size"
    Value value;
    int line = 0;  // 1-based
};

// Every scalar in the file's order. invalid_input with line and column; `name` is for the message.
[[nodiscard]] Expected<std::vector<ConfigScalar>> config_scalars(std::string_view text, ConfigFormat format,
                                                                 const std::string& name);

// not_found when there is no such scalar, else as above.
[[nodiscard]] Expected<ConfigScalar> get_config(std::string_view text, ConfigFormat format, const std::string& key,
                                                const std::string& name);

// Replaces the scalar, or adds it when the mapping that holds it is there. null removes the line in TOML, which has no
// null, and writes null elsewhere. not_found when an earlier key is missing, invalid_input when the key holds a mapping
// or a list.
[[nodiscard]] Expected<std::string> set_config(std::string_view text, ConfigFormat format, const std::string& key,
                                               const Value& value, const std::string& name);

}  // namespace infrarsi
