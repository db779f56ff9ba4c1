#include "core/search/ideas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace infrarsi {

namespace {

constexpr int kMostSteps = 40;
constexpr int kHeldLevers = 8;          // levers that are forced in, by their upside
constexpr double kLeastConfirm = 0.12;  // log gain since the last full run of the incumbent that asks for another

std::string percent_of(double log_gain) {
    return fmt::format("{:+.0f} %", 100 * std::expm1(log_gain));
}

Plan plan_of(const Knowledge& knowledge, const Point& point, const Guess& guess, double worth, std::string op,
             std::string_view verb) {
    Plan plan{point, std::move(op), "", guess, worth, knowledge.setting().short_updates};
    plan.reason = fmt::format("{} {}: {} ± {:.0f} % over the best so far, fits with P={:.2f}, passes with P={:.2f}",
                              verb, describe(knowledge.space(), point), percent_of(guess.delta), 100 * guess.sd,
                              guess.p_fits, guess.p_passes);
    return plan;
}

struct Lever {
    std::size_t axis = 0;
    int value = 0;
    double upside = 0;
};

// Settings that the incumbent has not, by how much they may give at best.
std::vector<Lever> levers_by_upside(const Knowledge& knowledge) {
    std::vector<Lever> levers;
    const Space& space = knowledge.space();
    for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
        for (int value = 0; value < static_cast<int>(space.axes[axis].labels.size()); ++value) {
            if (!space.axes[axis].legal[static_cast<std::size_t>(value)]) continue;
            if (knowledge.incumbent().values[axis] == value) continue;
            Point point = knowledge.incumbent();
            point.values[axis] = static_cast<std::uint8_t>(value);
            levers.push_back({axis, value, knowledge.guess(point).upside()});
        }
    }
    std::sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) {
        if (a.upside != b.upside) return a.upside > b.upside;
        return std::pair(a.axis, a.value) < std::pair(b.axis, b.value);
    });
    return levers;
}

}  // namespace

Climb climb(const Knowledge& knowledge, const Point& from, const ClimbRules& rules) {
    const Space& space = knowledge.space();
    Climb result;
    Point current = from;
    double value = rules.score(knowledge.guess(current));
    const auto note = [&](const Point& point, const Guess& guess, double score) {
        if ((result.best && score <= result.score) || knowledge.is_visited(point)) return;
        if (rules.is_wanted && !rules.is_wanted(point)) return;
        result = {point, guess, score};
    };
    note(current, knowledge.guess(current), value);
    for (int step = 0; step < kMostSteps; ++step) {
        Point best = current;
        double best_value = value + 1e-9;
        const auto consider = [&](const Point& next) {
            const Guess guess = knowledge.guess(next);
            const double score = rules.score(guess);
            note(next, guess, score);
            if (score <= best_value) return;
            best_value = score;
            best = next;
        };
        for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
            if (!rules.held.empty() && rules.held[axis] != 0) continue;
            for (std::size_t v = 0; v < space.axes[axis].labels.size(); ++v) {
                if (!space.axes[axis].legal[v] || current.values[axis] == v) continue;
                Point next = current;
                next.values[axis] = static_cast<std::uint8_t>(v);
                consider(next);
            }
        }
        for (std::size_t i = 0; i < space.patches.size(); ++i) {
            if (current.patches[i] == 0 && !knowledge.works(i) && !(rules.new_patches && knowledge.may_try(i)))
                continue;
            Point next = current;
            next.patches[i] ^= 1;
            consider(next);
        }
        if (best == current) break;
        current = best;
        value = best_value;
    }
    return result;
}

std::vector<char> big_axes(const Knowledge& knowledge) {
    const Space& space = knowledge.space();
    std::vector<char> big(space.axes.size(), 0);
    for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
        for (int value = 0; value < static_cast<int>(space.axes[axis].labels.size()); ++value) {
            if (value == space.axes[axis].reference) continue;
            const TimeModel::Lever lever = knowledge.time().lever(static_cast<int>(axis), value);
            if (std::abs(lever.gain) > space.gate) big[axis] = 1;
        }
    }
    return big;
}

std::vector<Plan> starts(const Knowledge& knowledge) {
    const int done = static_cast<int>(knowledge.history().size());
    std::vector<Plan> plans;
    if (done == 0) {
        const Climb top = climb(knowledge, reference_point(knowledge.space()),
                                {.score = [](const Guess& g) { return g.p_good() * g.y; }});
        if (top.best) {
            plans.push_back(plan_of(knowledge, *top.best, top.guess, 1e9, "start:prior",
                                    "start from the configuration that is rated highest,"));
        }
    } else if (done == 1) {
        for (Plan& plan : random_point(knowledge)) {
            plan.op = "start:random";
            plan.worth = 1e9;
            plans.push_back(std::move(plan));
        }
    }
    return plans;
}

std::vector<Plan> bundle(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    const auto score = [&](const Guess& g) { return knowledge.worth(g); };
    for (const Point& from : {knowledge.incumbent(), reference_point(knowledge.space())}) {
        const Climb top = climb(knowledge, from, {.score = score});
        if (top.best) {
            plans.push_back(plan_of(knowledge, *top.best, top.guess, top.score, "bundle", "try the bundle"));
        }
    }
    return plans;
}

std::vector<Plan> contrarian(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    const auto score = [&](const Guess& g) { return knowledge.worth(g); };
    int count = 0;
    for (const Lever& lever : levers_by_upside(knowledge)) {
        if (lever.upside <= knowledge.space().gate || ++count > kHeldLevers) break;
        Point from = knowledge.incumbent();
        from.values[lever.axis] = static_cast<std::uint8_t>(lever.value);
        std::vector<char> held(from.values.size(), 0);
        held[lever.axis] = 1;
        const auto has_lever = [&](const Point& point) { return point.values[lever.axis] == lever.value; };
        const Climb top = climb(knowledge, from, {.score = score, .is_wanted = has_lever, .held = held});
        if (!top.best) continue;
        const Axis& axis = knowledge.space().axes[lever.axis];
        plans.push_back(
            plan_of(knowledge, *top.best, top.guess, top.score, "contrarian",
                    fmt::format("{}={} may give {}, so", axis.name, axis.labels[static_cast<std::size_t>(lever.value)],
                                percent_of(lever.upside))));
    }
    return plans;
}

std::vector<Plan> backtrack(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    const Point reference = reference_point(knowledge.space());
    if (knowledge.incumbent() == reference) return plans;
    const auto score = [&](const Guess& g) { return knowledge.worth(g); };
    int count = 0;
    for (const Lever& lever : levers_by_upside(knowledge)) {
        if (lever.upside <= knowledge.space().gate || ++count > kHeldLevers / 2) break;
        Point from = reference;
        from.values[lever.axis] = static_cast<std::uint8_t>(lever.value);
        std::vector<char> held(from.values.size(), 0);
        held[lever.axis] = 1;
        const Climb top = climb(knowledge, from, {.score = score, .held = held});
        if (!top.best) continue;
        plans.push_back(plan_of(knowledge, *top.best, top.guess, top.score, "backtrack",
                                "from the clean reference, with what conflicts with the best so far,"));
    }
    return plans;
}

std::vector<Plan> complete_oom(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    const auto score = [&](const Guess& g) { return knowledge.worth(g); };
    int count = 0;
    for (auto run = knowledge.history().rbegin(); run != knowledge.history().rend() && count < 3; ++run) {
        if (run->kind != RunKind::oom) continue;
        ++count;
        if (knowledge.guess(run->point).upside() <= knowledge.space().gate) continue;
        const Climb top = climb(knowledge, run->point, {.score = score});
        if (!top.best) continue;
        plans.push_back(plan_of(knowledge, *top.best, top.guess, top.score, "complete",
                                "complete what ran out of memory with savers:"));
    }
    return plans;
}

std::vector<Plan> restart(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    if (knowledge.stalled() < 2) return plans;
    const std::vector<char> big = big_axes(knowledge);
    const Run* other = nullptr;
    for (const Run& run : knowledge.history()) {
        if (run.kind != RunKind::valid || (other && run.y <= other->y)) continue;
        int apart = 0;
        for (std::size_t a = 0; a < big.size(); ++a) {
            apart += big[a] != 0 && run.point.values[a] != knowledge.incumbent().values[a] ? 1 : 0;
        }
        if (apart >= 2) other = &run;
    }
    if (!other) return plans;
    const auto score = [&](const Guess& g) { return knowledge.worth(g); };
    const Climb top = climb(knowledge, other->point, {.score = score});
    if (top.best) {
        plans.push_back(plan_of(knowledge, *top.best, top.guess, top.score, "restart",
                                "warm restart from the best run of another kind:"));
    }
    return plans;
}

std::vector<Plan> random_point(const Knowledge& knowledge) {
    const Space& space = knowledge.space();
    Random random(knowledge.setting().seed ^ (0x9e3779b97f4a7c15ULL * (knowledge.history().size() + 1)));
    std::optional<Point> best;
    double best_chance = -1;
    for (int draw = 0; draw < 40; ++draw) {
        Point point = reference_point(space);
        for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
            const std::size_t value = random.below(space.axes[axis].labels.size());
            if (space.axes[axis].legal[value]) point.values[axis] = static_cast<std::uint8_t>(value);
        }
        if (knowledge.is_visited(point)) continue;
        const Guess guess = knowledge.guess(point);
        const double chance = guess.p_good();
        if (chance <= best_chance) continue;
        best = point;
        best_chance = chance;
        if (guess.p_fits >= 0.5 && draw >= 5) break;
    }
    std::vector<Plan> plans;
    if (best) {
        const Guess guess = knowledge.guess(*best);
        plans.push_back(
            plan_of(knowledge, *best, guess, knowledge.worth(guess), "random", "a random legal configuration,"));
    }
    return plans;
}

// All ideas that do not work yet are tried at once: each attempt is checked by itself, and a failed round is paid once.
std::vector<Plan> write_patches(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    Point point = knowledge.incumbent();
    double value = 0;
    int count = 0;
    for (std::size_t i = 0; i < point.patches.size(); ++i) {
        if (knowledge.works(i) || !knowledge.may_try(i)) continue;
        Point with = knowledge.incumbent();
        with.patches[i] = 1;
        const Guess guess = knowledge.guess(with);
        value += knowledge.chance_of(i) * guess.p_passes / knowledge.blame().p_passes(knowledge.incumbent()) *
                 Knowledge::improvement(guess);
        point.patches[i] = 1;
        ++count;
    }
    if (count == 0 || knowledge.is_visited(point)) return plans;
    const Guess guess = knowledge.guess(point);
    const double cost = knowledge.setting().costs.patch_failed +
                        guess.p_works * knowledge.run_cost(guess, knowledge.setting().short_updates);
    Plan plan =
        plan_of(knowledge, point, guess, value / cost, "patches", "write and try the patches that do not work yet:");
    plans.push_back(std::move(plan));
    return plans;
}

std::vector<Plan> confirm(const Knowledge& knowledge) {
    std::vector<Plan> plans;
    if (knowledge.is_confirmed() || knowledge.setting().short_updates == 0) return plans;
    const Guess guess = knowledge.guess(knowledge.incumbent());
    const double left = knowledge.setting().budget - knowledge.spent();
    const double cost = knowledge.run_cost(guess, 0);
    if (knowledge.incumbent_y() - knowledge.confirmed_y() < kLeastConfirm && left > 2.5 * cost) return plans;
    Plan plan = plan_of(knowledge, knowledge.incumbent(), guess, 1e8, "confirm", "the best so far, at full length:");
    plan.updates = 0;
    plans.push_back(std::move(plan));
    return plans;
}

}  // namespace infrarsi
