#include "core/bench/strategy.h"

#include "core/bench/baselines.h"
#include "core/bench/planner_strategy.h"
#include "core/text/nearest.h"

namespace infrarsi::bench {

std::vector<Strategy> all_strategies() {
    std::vector<Strategy> all = planner_strategies();
    for (Strategy& baseline : baselines()) all.push_back(std::move(baseline));
    return all;
}

Expected<Strategy> find_strategy(std::string_view name) {
    std::vector<std::string> names;
    for (Strategy& strategy : all_strategies()) {
        if (strategy.name == name) return std::move(strategy);
        names.push_back(strategy.name);
    }
    return fail(ErrorKind::not_found, "there is no strategy {}{}", name, did_you_mean(std::string(name), names));
}

}  // namespace infrarsi::bench
