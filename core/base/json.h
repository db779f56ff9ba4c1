#pragma once
// JSON at the edges: parsing that returns errors with a place, and one canonical text for what is signed or hashed.

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace infrarsi {

// `name` is used for the place (a path or "standard input"). invalid_input with line and column.
[[nodiscard]] Expected<nlohmann::json> parse_json(std::string_view text, const std::string& name);

[[nodiscard]] Expected<nlohmann::json> read_json(const std::filesystem::path& path);

// Keys sorted, no white space, shortest numbers that read back equal, invalid UTF-8 replaced. NaN and infinities are
// written as the strings "nan", "inf", "-inf" by the types' own to_json; a bare NaN here becomes null.
[[nodiscard]] std::string canonical_json(const nlohmann::json& json);

// For people: two spaces, keys sorted, a final newline.
[[nodiscard]] std::string pretty_json(const nlohmann::json& json);

}  // namespace infrarsi
