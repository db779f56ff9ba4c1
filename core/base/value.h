#pragma once
// Value: what a knob can be set to. null means "not set" (the flag or variable is absent).

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "core/base/expected.h"

namespace infrarsi {

using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

// Knob name → value. Names sort, so that equal settings print and hash equally.
using Settings = std::map<std::string, Value>;

[[nodiscard]] bool is_null(const Value& value);

// As a person and a command line write it: null is "null", true is "true", 0.5 is "0.5", text unquoted.
[[nodiscard]] std::string to_text(const Value& value);

// Number of an int, double or bool (0 or 1); nothing for text and null.
[[nodiscard]] std::optional<double> to_number(const Value& value);

// Equal as a job would see it: 1 and 1.0 are the same, "true" and true are the same, text otherwise exact.
[[nodiscard]] bool same_effect(const Value& a, const Value& b);

// Reads an unquoted scalar as YAML 1.2's core schema does: null/~, true/false, integers, floats, else text.
[[nodiscard]] Value value_from_text(std::string_view text);

[[nodiscard]] nlohmann::json to_json(const Value& value);
// invalid_input when the JSON is an array or an object.
[[nodiscard]] Expected<Value> value_from_json(const nlohmann::json& json);

[[nodiscard]] nlohmann::json to_json(const Settings& settings);
[[nodiscard]] Expected<Settings> settings_from_json(const nlohmann::json& json);

// `micro_batch=4 compile=true`, or "reference" when empty.
[[nodiscard]] std::string describe(const Settings& settings);

}  // namespace infrarsi
