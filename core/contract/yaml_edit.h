#pragma once
// Editing a YAML text without losing its comments, order or quoting: the scalar at a key path is replaced in place.

#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"

namespace infrarsi {

// Replaces the scalar at `path` (mapping keys; a number indexes a sequence), or adds the last key when its parent
// mapping is there (or is empty, `llm:`). Everything else keeps its bytes, and the result is parsed again to be sure
// that nothing else changed its meaning. not_found when an earlier key is missing; invalid_input when the text is no
// YAML, the place holds a mapping or a sequence, or stands under an alias, an anchor, a tag or a key written twice.
[[nodiscard]] Expected<std::string> set_yaml_scalar(std::string_view text, const std::vector<std::string>& path,
                                                    const Value& value);

// The scalar there, as a Value. not_found, invalid_input.
[[nodiscard]] Expected<Value> get_yaml_scalar(std::string_view text, const std::vector<std::string>& path);

// A scalar as YAML writes it, quoted where it must be ("on", "1e3" as text, text with ": ", …).
[[nodiscard]] std::string yaml_scalar(const Value& value);

}  // namespace infrarsi
