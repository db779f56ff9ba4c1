#include "core/search/planner.h"

#include <cmath>

#include "core/search/ideas.h"

using namespace infrarsi;

namespace {

// Axis 0 "compile" gives much and hangs unless axis 1 leaves its reference; axis 2 spends memory, axis 3 saves it; the
// rest is small change. Patch 0 helps, patch 1 cheats.
struct Job {
    Space space;

    Job() {
        space.phases = {{kMatmul, 0.5}, {kElementwise, 0.3}, {kOptimizerStep, 0.1}, {kHost, 0.1}};
        const auto add = [&](const char* name, unsigned phases, double gain, double gib) {
            Axis axis;
            axis.name = name;
            axis.labels = {"off", "on"};
            axis.legal = {true, true};
            axis.priors = {{}, {.phases = phases, .gain = gain, .gib = gib, .gib_sigma = 2}};
            space.axes.push_back(axis);
        };
        add("compile", kMatmul | kElementwise, 0.05, 0);
        add("fused_loss_off", kElementwise, -0.01, -1);
        add("no_recompute", kMatmul, 0.05, 20);
        add("shard_more", kHost, -0.01, -15);
        add("fused_optimizer", kOptimizerStep, 0.01, 0);
        add("pin", kHost, 0.005, 0);
        space.patches = {{"norm", {.phases = kElementwise, .gain = 0.02}},
                         {"cheat", {.phases = kMatmul, .gain = 0.05}}};
        space.reference_gib = 60;
        space.capacity_gib = 75;
        space.sigma = 0.002;
        space.gate = 0.02;
    }

    [[nodiscard]] double y(const Point& p) const {
        double m = 0.5, e = 0.3, o = 0.1, h = 0.1;
        if (p.values[0] != 0) m *= 0.7, e *= 0.5;
        if (p.values[1] != 0) e *= 1.05;
        if (p.values[2] != 0) m *= 0.8;
        if (p.values[3] != 0) h *= 1.1;
        if (p.values[4] != 0) o *= 0.6;
        if (p.values[5] != 0) h *= 0.98;
        if (p.patches[0] != 0) e *= 0.85;
        if (p.patches[1] != 0) m *= 0.7;
        return -std::log(m + e + o + h);
    }

    [[nodiscard]] Run run(const Plan& plan, std::vector<int>& tries) const {
        Run run;
        run.point = plan.point;
        run.updates = plan.updates;
        for (std::size_t i = 0; i < 2; ++i) {
            if (plan.point.patches[i] != 0 && tries[i] < 2 && ++tries[i] < 2) run.broken.push_back(static_cast<int>(i));
        }
        const double gib = 60 + (plan.point.values[2] != 0 ? 20 : 0) - (plan.point.values[3] != 0 ? 15 : 0);
        if (!run.broken.empty()) {
            run.kind = RunKind::patch_failed;
            run.cost = 0.3;
        } else if (plan.point.values[0] != 0 && plan.point.values[1] == 0) {
            run.kind = RunKind::failed;
            run.failure_kind = 1;
            run.cost = 0.8;
        } else if (gib > 75) {
            run.kind = RunKind::oom;
            run.need_gib = gib;
            run.cost = 0.25;
        } else {
            run.kind = plan.point.patches[1] != 0 ? RunKind::rejected : RunKind::valid;
            run.failure_kind = 2;
            run.has_time = true;
            run.y = y(plan.point);
            run.peak_gib = gib;
            run.cost = std::exp(-run.y);
        }
        return run;
    }

    [[nodiscard]] std::vector<Run> search(const SearchSetting& setting) const {
        std::vector<Run> history;
        std::vector<int> tries(2, 0);
        double spent = 0;
        while (spent < setting.budget) {
            const auto plan = next_plan(space, setting, history);
            if (!plan) break;
            history.push_back(run(*plan, tries));
            spent += history.back().cost;
        }
        return history;
    }
};

}  // namespace

TEST_CASE("the planner finds what hides behind a hang and a memory cliff, and leaves the cheat", "[search]") {
    const Job job;
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
        SearchSetting setting;
        setting.budget = 14;
        setting.seed = seed;
        const std::vector<Run> history = job.search(setting);
        const std::vector<Point> best = finalists(job.space, setting, history, 3);
        REQUIRE(!best.empty());
        CAPTURE(seed, describe(job.space, best.front()), history.size());
        CHECK(best.front().values[0] == 1);
        CHECK(best.front().values[1] == 1);
        CHECK(best.front().values[2] == 1);
        CHECK(best.front().values[3] == 1);
        CHECK(best.front().patches[0] == 1);
        for (const Point& point : best) CHECK(point.patches[1] == 0);
    }
}

TEST_CASE("the same history gives the same plan, and no candidate is planned twice", "[search]") {
    const Job job;
    SearchSetting setting;
    setting.budget = 8;
    const std::vector<Run> history = job.search(setting);
    for (std::size_t n = 0; n < history.size(); ++n) {
        const std::vector<Run> part(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(n));
        const auto plan = next_plan(job.space, setting, part);
        REQUIRE(plan);
        CHECK(plan->point == history[n].point);
        CHECK(!plan->reason.empty());
        for (std::size_t before = 0; before < n; ++before) {
            if (history[before].kind != RunKind::patch_failed) CHECK(history[before].point != plan->point);
        }
    }
}

TEST_CASE("a fast short run that breaks at full length is neither incumbent nor finalist", "[search]") {
    const Job job;
    SearchSetting setting;
    setting.short_updates = 12;
    Point good = reference_point(job.space), bad = good;
    good.values[4] = 1;
    bad.values[5] = 1;
    std::vector<Run> history(3);
    history[0] = {
        .point = good, .kind = RunKind::valid, .has_time = true, .y = 0.05, .sigma = 0.002, .cost = 0.5, .updates = 12};
    history[1] = {
        .point = bad, .kind = RunKind::valid, .has_time = true, .y = 0.3, .sigma = 0.002, .cost = 0.5, .updates = 12};
    history.resize(2);
    CHECK(Knowledge(job.space, setting, history).incumbent() == bad);
    CHECK(confirm(Knowledge(job.space, setting, history)).size() == 1);
    history.push_back({.point = bad,
                       .kind = RunKind::rejected,
                       .has_time = true,
                       .y = 0.3,
                       .sigma = 0.002,
                       .cost = 1,
                       .failure_kind = 3});
    const Knowledge knowledge(job.space, setting, history);
    CHECK(knowledge.incumbent() == good);
    CHECK(finalists(job.space, setting, history, 3) == std::vector<Point>{good});
}

TEST_CASE("nothing to vary, nothing to plan", "[search]") {
    Space space;
    std::string why;
    CHECK(!next_plan(space, {}, {}, &why));
    CHECK(!why.empty());
}

TEST_CASE("values outside the menu are never planned", "[search]") {
    Job job;
    job.space.axes[0].legal[1] = false;
    SearchSetting setting;
    setting.budget = 8;
    for (const Run& run : job.search(setting)) CHECK(run.point.values[0] == 0);
}
