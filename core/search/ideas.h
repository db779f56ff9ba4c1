#pragma once
// The operators of the planner. Each is pure: knowledge in, ideas out.

#include <functional>
#include <vector>

#include "core/base/env.h"
#include "core/search/planner.h"

namespace infrarsi {

// A point reached by hill climbing: the best one met that was not visited.
struct Climb {
    std::optional<Point> best;
    Guess guess;
    double score = 0;
};

struct ClimbRules {
    std::function<double(const Guess&)> score;    // what is climbed
    std::function<bool(const Point&)> is_wanted;  // what may be the answer; empty: anything
    std::vector<char> held;                       // axes that stay; empty: none
    bool new_patches = false;                     // patches that were never tried may enter
};

[[nodiscard]] Climb climb(const Knowledge& knowledge, const Point& from, const ClimbRules& rules);

// Axes of which some value is believed to move time by the gate or more.
[[nodiscard]] std::vector<char> big_axes(const Knowledge& knowledge);

[[nodiscard]] std::vector<Plan> starts(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> bundle(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> contrarian(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> backtrack(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> complete_oom(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> restart(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> random_point(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> write_patches(const Knowledge& knowledge);
[[nodiscard]] std::vector<Plan> confirm(const Knowledge& knowledge);

}  // namespace infrarsi
