#include "core/search/blame.h"

using namespace infrarsi;

namespace {

using Stage = BlameTrial::Stage;

struct Court {
    Space space;
    std::vector<Point> points;  // stable addresses: reserved
    std::vector<BlameTrial> trials;

    explicit Court(int axes, int patches = 0) {
        for (int i = 0; i < axes; ++i) {
            Axis axis;
            axis.name = std::string(1, static_cast<char>('a' + i));
            axis.labels = {"off", "on"};
            axis.legal = {true, true};
            axis.priors.resize(2);
            space.axes.push_back(axis);
        }
        for (int i = 0; i < patches; ++i) space.patches.push_back({"p" + std::to_string(i), {}});
        points.reserve(100);
    }
    [[nodiscard]] Point point(const std::vector<int>& on, const std::vector<int>& patches = {}) const {
        Point result = reference_point(space);
        for (const int axis : on) result.values[static_cast<std::size_t>(axis)] = 1;
        for (const int patch : patches) result.patches[static_cast<std::size_t>(patch)] = 1;
        return result;
    }
    void saw(const Point& point, Stage stage, int kind = 0, bool is_full = true) {
        points.push_back(point);
        trials.push_back({&points.back(), stage, kind, is_full});
    }
    [[nodiscard]] Blame blame() const { return {space, trials}; }
};

}  // namespace

TEST_CASE("the reference is never suspect", "[search]") {
    Court court(4);
    CHECK(court.blame().p_passes(court.point({})) == 1);
    court.saw(court.point({0}), Stage::early);
    CHECK(court.blame().p_passes(court.point({})) == 1);
}

TEST_CASE("the pair that no passing run contains is banned, and nothing else", "[search]") {
    Court court(5);
    court.saw(court.point({0, 2}), Stage::passed);
    court.saw(court.point({1, 2, 3}), Stage::passed);
    court.saw(court.point({0, 1, 2, 3}), Stage::early);
    court.saw(court.point({0, 1}), Stage::early);
    const Blame blame = court.blame();
    REQUIRE(!blame.suspects().empty());
    CHECK(blame.words(blame.suspects().front()) == "a=on with b=on");
    CHECK(blame.p_passes(court.point({0, 1})) < 0.1);
    CHECK(blame.p_passes(court.point({0, 2, 3})) > 0.9);
    CHECK(blame.p_passes(court.point({1, 2, 3})) > 0.99);
}

TEST_CASE("a setting may only fail beside a reference value", "[search]") {
    Court court(6);
    court.saw(court.point({0}), Stage::early, 1);
    // Alone it failed; with everything else changed its chance is better than alone.
    CHECK(court.blame().p_passes(court.point({0})) < 0.05);
    CHECK(court.blame().p_passes(court.point({0, 1, 2, 3, 4, 5})) > 5 * court.blame().p_passes(court.point({0})));
    court.saw(court.point({0, 1}), Stage::passed);
    const Blame blame = court.blame();
    CHECK(blame.words(blame.suspects().front()) == "a=on with b=off");
    CHECK(blame.p_passes(court.point({0, 1, 2})) > 0.9);
    CHECK(blame.p_passes(court.point({0, 2})) < 0.1);
}

TEST_CASE("failures of different kinds are not put on one culprit", "[search]") {
    Court same(6), different(6);
    const std::vector<std::vector<int>> failed{{0, 1}, {0, 2}, {0, 3}};
    for (std::size_t i = 0; i < failed.size(); ++i) {
        same.saw(same.point(failed[i]), Stage::early, 1);
        different.saw(different.point(failed[i]), Stage::early, static_cast<int>(i));
    }
    const double alone_same = same.blame().p_passes(same.point({0, 4, 5}));
    const double alone_different = different.blame().p_passes(different.point({0, 4, 5}));
    CHECK(alone_different > alone_same);
}

TEST_CASE("a short run clears what shows at the start, and only doubts what shows late", "[search]") {
    Court court(3);
    court.saw(court.point({0, 1}), Stage::passed, 0, false);
    const double after_short = court.blame().p_holds(court.point({0, 1}));
    CHECK(after_short < 1);
    CHECK(after_short > Court(3).blame().p_holds(court.point({0, 1})));
    // At full length the numbers broke: there is somebody to blame, though the short run passed.
    court.saw(court.point({0, 1}), Stage::late, 7);
    CHECK(court.blame().p_holds(court.point({0, 1})) < 0.1);
    CHECK(court.blame().p_passes(court.point({2})) > 0.9);
    Court full(3);
    full.saw(full.point({0, 1}), Stage::passed);
    CHECK(full.blame().p_passes(full.point({0, 1})) == 1);
}

TEST_CASE("what no short run can show is found by the first full ones", "[search]") {
    Court court(4, 4);
    for (int i = 0; i < 8; ++i) {
        court.saw(court.point({i % 4}, {0, 1}), Stage::passed, 0, false);
        court.saw(court.point({i % 4}, {0, 2}), Stage::passed, 0, false);
    }
    // However many short runs it came through, it is likelier one culprit in both than a new one in each.
    court.saw(court.point({0}, {0, 3}), Stage::late, 1);
    court.saw(court.point({1}, {0, 1}), Stage::late, 1);
    CHECK(court.blame().words(court.blame().suspects().front()) == "patch p0");
    CHECK(court.blame().p_holds(court.point({2}, {0})) < 0.5);
    CHECK(court.blame().p_holds(court.point({2}, {2})) > 0.7);
}

TEST_CASE("a patch is blamed before the settings beside it", "[search]") {
    Court court(4, 3);
    court.saw(court.point({0, 1}, {0, 1}), Stage::late, 5);
    CHECK(court.blame().p_passes(court.point({0, 1})) > 0.9);
    const double before = court.blame().p_passes(court.point({}, {0}));
    court.saw(court.point({0, 1}, {1}), Stage::passed);
    const Blame blame = court.blame();
    CHECK(blame.words(blame.suspects().front()) == "patch p0");
    CHECK(blame.p_passes(court.point({}, {0})) < 0.1);
    CHECK(before > blame.p_passes(court.point({}, {0})));
    CHECK(blame.p_passes(court.point({2}, {1})) > 0.9);
    REQUIRE(blame.worst_in(court.point({3}, {0, 2}), 0.5) != nullptr);
    CHECK(blame.worst_in(court.point({3}, {1}), 0.5) == nullptr);
}

TEST_CASE("the order of runs does not matter", "[search]") {
    Court forth(5), back(5);
    const std::vector<std::pair<std::vector<int>, Stage>> runs{
        {{0, 1, 2}, Stage::early}, {{1, 2}, Stage::passed}, {{0, 3}, Stage::early}, {{0, 4}, Stage::passed}};
    for (auto run = runs.begin(); run != runs.end(); ++run) forth.saw(forth.point(run->first), run->second);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) back.saw(back.point(run->first), run->second);
    for (const auto& on : std::vector<std::vector<int>>{{0}, {0, 1}, {0, 2, 3}, {1, 4}}) {
        CHECK(forth.blame().p_passes(forth.point(on)) == Approx(back.blame().p_passes(back.point(on))).epsilon(0.02));
    }
}
