#include "core/search/conflicts.h"

using namespace infrarsi;

TEST_CASE("a pair absent from every passing run is banned, its members are not", "[search]") {
    // 1 and 2 pass apart from one another, together they failed.
    const Conflicts conflicts({{1, 3}, {2, 3}}, {{1, 2, 3}}, {});
    CHECK(conflicts.blame({1, 2}) > 0.85);
    CHECK(conflicts.blame({1}) == 0);
    CHECK(conflicts.blame({1, 3}) == 0);
    CHECK(conflicts.p_passes({1, 3}) == Approx(1));
    CHECK(conflicts.p_passes({1, 2}) < 0.15);
    const Conflicts twice({{1, 3}, {2, 3}}, {{1, 2, 3}, {1, 2, 4}}, {});
    CHECK(twice.banned({1, 2, 7}) == Items{1, 2});
    CHECK(twice.banned({1, 7}).empty());
}

TEST_CASE("the only suspect is banned after one failure", "[search]") {
    const Conflicts conflicts({{1}, {2}}, {{1, 2}}, {});
    CHECK(conflicts.banned({1, 2}) == Items{1, 2});
}

TEST_CASE("blame spreads over many suspects and a later pass lifts it", "[search]") {
    const std::vector<Items> failed{{1, 2, 3, 4, 5}};
    const Conflicts unsure({}, failed, {});
    CHECK(unsure.banned({1, 2, 3, 4, 5}).empty());
    CHECK(unsure.blame({1}) < 0.2);
    CHECK(unsure.blame({1}) > 0.05);
    CHECK(unsure.p_passes({1, 2, 3, 4, 5}) < unsure.p_passes({1, 2}));
    const Conflicts cleared({{1, 2, 3, 4}}, failed, {});
    CHECK(cleared.blame({1}) == 0);
    CHECK(cleared.blame({5}) > unsure.blame({5}));
}

TEST_CASE("a triple is blamed once its pairs have passed", "[search]") {
    const Conflicts conflicts({{1, 2}, {1, 3}, {2, 3}}, {{1, 2, 3}}, {});
    CHECK(conflicts.banned({1, 2, 3, 9}) == Items{1, 2, 3});
    CHECK(conflicts.p_passes({1, 2, 3}) < 0.01);
}

TEST_CASE("a failed patch is blamed before the settings it was tried on", "[search]") {
    const Conflicts conflicts({{1, 2}}, {{1, 2, 8}}, {8});
    CHECK(conflicts.banned({8}) == Items{8});
    const Conflicts first_trial({}, {{1, 8}}, {8});
    CHECK(first_trial.blame({8}) > 10 * first_trial.blame({1}));
}
