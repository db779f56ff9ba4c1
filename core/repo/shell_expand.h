#pragma once
// Shell words as bash expands them (quotes, variables, defaults, arrays, arithmetic), with the origin of each byte
// kept. Nothing is run: a command substitution is unknown text, but for `dirname`, `pwd` and `basename` of what is
// known.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/repo/traced_text.h"

namespace infrarsi {

// One word of a command or of an array.
struct ShellWord {
    TracedText value;              // after expansion
    std::optional<TextSpan> node;  // the word as it is written, with its quotes, where it stands alone
};

struct ShellVariable {
    std::vector<ShellWord> words;  // one for a scalar
    bool is_array = false;
    bool exported = false;
    std::optional<TextSpan> assignment;  // `X=1`
    std::optional<TextSpan> statement;   // what to remove to unset it: `export X=1`, when it holds one assignment only
};

struct ShellState {
    std::map<std::string, ShellVariable> variables;
    std::vector<ShellWord> positional;  // $1 …
    std::string script;                 // $0, relative to the root or absolute
    std::string root;                   // absolute
    std::string cwd;                    // absolute
    int depth = 0;                      // of nested expansions, bounded
};

enum class WordSplitting { on, off };

// Expands raw shell text (of one word, or of several separated by white space) into words.
[[nodiscard]] std::vector<ShellWord> expand_words(const TracedText& raw, ShellState& state, WordSplitting splitting);

// The same as one text, as in an assignment or between double quotes.
[[nodiscard]] TracedText expand_text(const TracedText& raw, ShellState& state);

// Integer arithmetic of $(( … )); nothing when it holds something unknown or malformed.
[[nodiscard]] std::optional<long long> shell_arithmetic(std::string_view expression, ShellState& state);

// `*`, `?` and `[…]` against the whole of `text`.
[[nodiscard]] bool shell_match(std::string_view pattern, std::string_view text);

enum class Truth { no, yes, unknown };

// The words between `[` and `]` (or `[[` and `]]`), evaluated as `test` does.
[[nodiscard]] Truth shell_test(const std::vector<ShellWord>& words, const ShellState& state);

}  // namespace infrarsi
