#pragma once
// Line-by-line reading of what the agent spooled (*.jsonl), in constant memory.

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/base/expected.h"

namespace infrarsi {

// Calls `line(number, text)` for each line of the file, 1-based; a missing file has none. The last line without a
// newline is passed with `complete` false. Stops at the first error that `line` returns. io when it cannot be read.
using JsonlLine = std::function<Expected<void>(int number, std::string_view text, bool complete)>;
[[nodiscard]] Expected<void> read_lines(const std::filesystem::path& path, const JsonlLine& line);

// Each line as a JSON object. A torn last line (the agent was killed while it wrote) is left out; any other line that
// does not parse is `corrupt` with its number, and so is a json::exception of `row`.
using JsonlRow = std::function<void(const nlohmann::json& row)>;
[[nodiscard]] Expected<void> read_jsonl(const std::filesystem::path& path, const JsonlRow& row);

}  // namespace infrarsi
