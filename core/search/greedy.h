#pragma once
// Greedy growth of a configuration: the move that raises the value most, until none does. Shared by the first start
// (over the prior) and the combination (over what was measured).

#include <functional>

#include "core/search/operators.h"

namespace infrarsi {

struct GreedyRules {
    // Which moves may enter; going back to the reference always may.
    std::function<bool(const Move&)> may_move;
    std::function<bool(const Patch&)> may_patch;
    // What the finished candidate must satisfy; the best such unvisited candidate on the way is the answer.
    std::function<bool(const Candidate&, const Estimate&)> is_wanted;
};

// The wanted, unvisited candidate of highest chance × expected gain over the incumbent met on the way from `from`.
[[nodiscard]] std::optional<Candidate> grow(const Situation& situation, const Candidate& from,
                                            const GreedyRules& rules);

}  // namespace infrarsi
