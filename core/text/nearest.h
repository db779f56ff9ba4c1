#pragma once
// "Did you mean …?": the known word that a misspelt one is nearest to.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infrarsi {

// The candidate with the fewest single-letter edits and swaps (Damerau–Levenshtein, case ignored), when that is at most
// a third of the word's length and at least 1 edit is allowed; the first one of equals. O(candidates · length²).
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      const std::vector<std::string>& candidates);

// ` (did you mean "x"?)`, or the empty text: what an error sentence ends with.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace infrarsi
