#include "core/simulate/workload.h"

#include <algorithm>

namespace infrarsi::sim {

namespace {

template <class Items, class Matches>
std::optional<int> index_where(const Items& items, Matches matches) {
    const auto found = std::find_if(items.begin(), items.end(), matches);
    if (found == items.end()) return std::nullopt;
    return static_cast<int>(found - items.begin());
}

}  // namespace

std::optional<int> Workload::find_knob(std::string_view knob) const {
    return index_where(knobs, [&](const Knob& item) { return item.name == knob; });
}

std::optional<int> Workload::find_patch(std::string_view id) const {
    return index_where(patches, [&](const Patch& item) { return item.id == id; });
}

std::optional<int> find_value(const Knob& knob, const Value& value) {
    return index_where(knob.values, [&](const KnobValue& item) { return item.value == value; });
}

}  // namespace infrarsi::sim
