#pragma once
// Does a Python text still parse after a change? Cheap (about 100 µs per kB), so it is asked before a trial is paid
// for.

#include <optional>
#include <string>
#include <string_view>

namespace infrarsi {

struct SyntaxProblem {
    int line = 0;      // 1-based, in the new text
    std::string text;  // the first line of what does not parse
};

// A place in `after` that does not parse and was not broken the same way in `before`; nothing when there is none. What
// the grammar does not know and the interpreter does (a new Python) is thus not held against a patch.
[[nodiscard]] std::optional<SyntaxProblem> new_syntax_problem(std::string_view before, std::string_view after);

}  // namespace infrarsi
