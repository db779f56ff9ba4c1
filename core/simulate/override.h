#pragma once
// `--set PATH=VALUE`: a key of a YAML tree replaced before the tree is read, so that an override meets the same checks
// as the file. Internal to the workload reader.

#include "core/base/yaml_node.h"

namespace infrarsi::sim {

// Replaces or adds the value at PATH (keys joined by dots; in a list an index from 0, or the `name` or `id` of an
// item). What comes from an override has no line. invalid_input: no `=`, VALUE is no YAML, PATH leads through something
// that is not there.
[[nodiscard]] Expected<void> apply_override(YamlNode& root, const std::string& override_text);

}  // namespace infrarsi::sim
