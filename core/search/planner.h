#pragma once
// The controller over a Space: each operator offers candidates with its reason in words, and one judge takes the one
// that is worth most for what it costs (paper §4, DESIGN §8). Deterministic: the same space, setting and history give
// the same plan.

#include <optional>
#include <string>
#include <vector>

#include "core/search/knowledge.h"

namespace infrarsi {

struct Plan {
    Point point;
    std::string op;
    std::string reason;
    Guess guess;
    double worth = 0;
    int updates = 0;  // of the run; 0: full length
};

// Nothing: no candidate is worth a trial; `why` says so in a sentence.
[[nodiscard]] std::optional<Plan> next_plan(const Space& space, const SearchSetting& setting,
                                            const std::vector<Run>& history, std::string* why = nullptr);

// Names of the operators, for `SearchSetting::off`.
[[nodiscard]] const std::vector<std::string>& operator_names();

}  // namespace infrarsi
