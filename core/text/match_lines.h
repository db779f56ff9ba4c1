#pragma once
// Which lines two texts have in common, in order: what every diff starts from. Patience diff (fixed points are lines
// that occur once on both sides) over Myers' greedy search (E. W. Myers, "An O(ND) difference algorithm and its
// variations", 1986) in the gaps.

#include <vector>

namespace infrarsi {

struct LineMatch {
    std::vector<bool> removed;  // of the old lines
    std::vector<bool> added;    // of the new lines; what is neither pairs up in order
};

// Equal lines have equal numbers, from 0 up and dense. A gap that needs more than 1,000 edits is taken as replaced, so
// the cost stays near linear: about 1 ms for 10,000 lines with small edits.
[[nodiscard]] LineMatch match_lines(const std::vector<int>& old_lines, const std::vector<int>& new_lines);

}  // namespace infrarsi
