#include "core/search/planner.h"

#include <functional>

#include "core/search/ideas.h"

namespace infrarsi {

namespace {

struct Operator {
    std::string name;
    std::function<std::vector<Plan>(const Knowledge&)> offer;
};

const std::vector<Operator>& operators() {
    static const std::vector<Operator> kAll{
        {"starts", starts},         {"confirm", confirm},     {"bundle", bundle},
        {"contrarian", contrarian}, {"backtrack", backtrack}, {"complete", complete_oom},
        {"restart", restart},       {"random", random_point}, {"patches", write_patches}};
    return kAll;
}

constexpr double kDoubtful = 0.5;     // P(holds) under which only a full run tells
constexpr double kLeastWorth = 1e-4;  // log units per run of the reference

}  // namespace

const std::vector<std::string>& operator_names() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names;
        for (const Operator& op : operators()) names.push_back(op.name);
        return names;
    }();
    return kNames;
}

std::optional<Plan> next_plan(const Space& space, const SearchSetting& setting, const std::vector<Run>& history,
                              std::string* why) {
    const Knowledge knowledge(space, setting, history);
    std::optional<Plan> best;
    for (const Operator& op : operators()) {
        if (setting.off.contains(op.name)) continue;
        for (Plan& plan : op.offer(knowledge)) {
            if (best && plan.worth <= best->worth) continue;
            best = std::move(plan);
        }
        if (best && best->worth >= 1e8) break;
    }
    if (best && best->worth < kLeastWorth) best.reset();
    // A short run could not settle what is in doubt.
    if (best && best->guess.p_holds < kDoubtful) best->updates = 0;
    if (!best && why) *why = "no candidate is worth a trial any more";
    return best;
}

}  // namespace infrarsi
