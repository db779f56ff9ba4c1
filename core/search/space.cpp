#include "core/search/space.h"

namespace infrarsi {

Point reference_point(const Space& space) {
    Point point;
    for (const Axis& axis : space.axes) point.values.push_back(static_cast<std::uint8_t>(axis.reference));
    point.patches.assign(space.patches.size(), 0);
    return point;
}

int distance(const Point& a, const Point& b) {
    int count = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) count += a.values[i] != b.values[i] ? 1 : 0;
    return count;
}

std::string describe(const Space& space, const Point& point) {
    std::string words;
    for (std::size_t i = 0; i < space.axes.size(); ++i) {
        const Axis& axis = space.axes[i];
        if (point.values[i] == axis.reference) continue;
        words += (words.empty() ? "" : " ") + axis.name + "=" + axis.labels[point.values[i]];
    }
    for (std::size_t i = 0; i < space.patches.size(); ++i) {
        if (point.patches[i] != 0) words += (words.empty() ? "+ " : " + ") + space.patches[i].name;
    }
    return words.empty() ? "the reference" : words;
}

}  // namespace infrarsi
