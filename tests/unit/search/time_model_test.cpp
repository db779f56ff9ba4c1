#include "core/search/time_model.h"

#include <cmath>

#include "core/base/env.h"

using namespace infrarsi;

namespace {

Axis toggle(const std::string& name, unsigned phases, double gain = 0, std::optional<double> told = {}) {
    Axis axis;
    axis.name = name;
    axis.labels = {"false", "true"};
    axis.legal = {true, true};
    axis.priors = {{}, {.phases = phases, .gain = gain, .told = told}};
    return axis;
}

Space two_phases() {
    Space space;
    space.phases = {{kMatmul, 0.6}, {kAttention, 0.4}};
    space.axes = {toggle("a", kMatmul), toggle("b", kMatmul), toggle("c", kAttention)};
    return space;
}

Point with(const Space& space, std::vector<int> axes) {
    Point point = reference_point(space);
    for (const int axis : axes) point.values[static_cast<std::size_t>(axis)] = 1;
    return point;
}

}  // namespace

TEST_CASE("without measurements the model says what the rules say", "[search]") {
    Space space = two_phases();
    space.axes[0].priors[1].gain = 0.1;
    const TimeModel model(space, {});
    CHECK(model.predict(reference_point(space)).y == Approx(0).margin(1e-12));
    CHECK(model.lever(0, 1).gain == Approx(0.1));
    CHECK(model.lever(1, 1).gain == Approx(0).margin(1e-12));
    // The phase is 60 % of the step: even a perfect lever cannot pass −ln(1 − 0.6).
    space.axes[0].priors[1].gain = 5;
    CHECK(TimeModel(space, {}).lever(0, 1).gain < -std::log(0.4));
}

TEST_CASE("levers on one phase are worth less together, on different phases more", "[search]") {
    const Space space = two_phases();
    // a alone takes 40 % off matmul, b alone 40 %, c alone half of attention.
    const double a = -std::log(0.6 * 0.6 + 0.4), c = -std::log(0.6 + 0.4 * 0.5);
    const std::vector<TimeEvidence> runs{
        {with(space, {0}), a, 0.001}, {with(space, {1}), a, 0.001}, {with(space, {2}), c, 0.001}};
    const TimeModel model(space, runs);
    const double ab = model.predict(with(space, {0, 1})).y, ac = model.predict(with(space, {0, 2})).y;
    CHECK(ab == Approx(-std::log(0.6 * 0.36 + 0.4)).epsilon(0.02));
    CHECK(ac == Approx(-std::log(0.6 * 0.6 + 0.4 * 0.5)).epsilon(0.02));
    CHECK(ab < 2 * a);
    CHECK(ac > a + c);
}

TEST_CASE("without a profile it is the linear model in logs", "[search]") {
    Space space = two_phases();
    space.phases = {{}};
    for (Axis& axis : space.axes) axis.priors[1].phases = kEveryPhase;
    const TimeModel model(space, {{with(space, {0}), 0.2, 0.001}, {with(space, {0, 2}), 0.5, 0.001}});
    CHECK(model.lever(0, 1).gain == Approx(0.2).epsilon(0.02));
    CHECK(model.lever(2, 1).gain == Approx(0.3).epsilon(0.02));
    CHECK(model.predict(with(space, {0, 1, 2})).y ==
          Approx(model.lever(0, 1).gain + model.lever(1, 1).gain + model.lever(2, 1).gain));
}

TEST_CASE("what is measured is sure, what is not stays open", "[search]") {
    const Space space = two_phases();
    const TimeModel before(space, {});
    const TimeModel after(space, {{with(space, {0}), 0.2, 0.001}});
    CHECK(after.lever(0, 1).sd < 0.05 * before.lever(0, 1).sd);
    CHECK(after.lever(2, 1).sd == Approx(before.lever(2, 1).sd).epsilon(1e-6));
    // The difference of two points that share a lever does not depend on it.
    const auto ab = after.predict(with(space, {0, 2})), b = after.predict(with(space, {2}));
    CHECK(after.sd(ab.gradient, b.gradient) < after.lever(2, 1).sd);
}

TEST_CASE("an outsider who is always wrong loses his say", "[search]") {
    Space space;
    space.phases = {{}};
    std::vector<TimeEvidence> wrong, right;
    for (int i = 0; i < 12; ++i)
        space.axes.push_back(toggle("k" + std::to_string(i), kEveryPhase, 0, i % 2 == 0 ? 0.2 : -0.1));
    for (int i = 0; i < 8; ++i) {
        const double truth = i % 2 == 0 ? 0.2 : -0.1;
        wrong.push_back({with(space, {i}), -truth, 0.002});
        right.push_back({with(space, {i}), truth, 0.002});
    }
    CHECK(TimeModel(space, right).trust() > 0.6);
    CHECK(TimeModel(space, wrong).trust() < 0);
    CHECK(TimeModel(space, right).lever(10, 1).gain > 0.1);
    CHECK(TimeModel(space, wrong).lever(10, 1).gain < 0.03);
}

TEST_CASE("neighbours along an ordered axis learn from one another", "[search]") {
    Space space = two_phases();
    Axis axis = toggle("steps", kMatmul);
    axis.labels = {"1", "2", "4"};
    axis.legal = {true, true, true};
    axis.priors.push_back(axis.priors[1]);
    space.axes = {axis};
    Point one = reference_point(space);
    one.values[0] = 1;
    const double free = TimeModel(space, {{one, 0.15, 0.001}}).lever(0, 2).gain;
    CHECK(free == Approx(0).margin(1e-9));
    space.axes[0].is_ordered = true;
    const double ordered = TimeModel(space, {{one, 0.15, 0.001}}).lever(0, 2).gain;
    CHECK(ordered > 0.03);
}

TEST_CASE("a patch that did nothing may still do something beside a large lever", "[search]") {
    Space space = two_phases();
    space.patches = {{"p", {.phases = kAttention}}};
    Point patched = reference_point(space);
    patched.patches[0] = 1;
    const TimeModel model(space, {{patched, 0.0, 0.001}, {with(space, {0}), 0.3, 0.001}});
    const auto sd_of_patch = [&](Point point) {
        const auto without = model.predict(point);
        point.patches[0] = 1;
        return model.sd(model.predict(point).gradient, without.gradient);
    };
    CHECK(sd_of_patch(reference_point(space)) < 0.01);
    CHECK(sd_of_patch(with(space, {0})) > 0.03);
}
