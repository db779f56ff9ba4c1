#pragma once
// Literals of Python's syntax tree as values. Part of python_options.

#include <map>
#include <optional>
#include <string>

#include "core/base/value.h"
#include "core/repo/syntax_tree.h"

namespace infrarsi {

// Numbers, text, booleans, None, and arithmetic on them; a name is looked up in `globals`. Nothing for anything else.
[[nodiscard]] std::optional<Value> python_literal(TSNode node, std::string_view text,
                                                  const std::map<std::string, Value>& globals);

}  // namespace infrarsi
