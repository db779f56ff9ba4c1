#include "core/search/time_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace infrarsi {

namespace {

constexpr int kSteps = 6;               // of Gauss–Newton; three are usual
constexpr double kMostReduction = 0.8;  // a rule never says that a phase falls under half

double share_of(const std::vector<PhaseGroup>& groups, unsigned phases) {
    double sum = 0;
    for (const PhaseGroup& group : groups) sum += (group.phases & phases) != 0 ? group.share : 0;
    return sum;
}

// The reduction in phases of this share that gives a log gain over all.
double reduction_for(double gain, double share) {
    if (share <= 0) return 0;
    const double left = 1 - (1 - std::exp(-gain)) / share;
    if (left <= std::exp(-kMostReduction)) return kMostReduction;
    return std::max(-std::log(left), -kMostReduction);
}

}  // namespace

TimeModel::TimeModel(const Space& space, const std::vector<TimeEvidence>& evidence, const TimeRules& rules)
    : space_(space), rules_(rules) {
    told_ = add(rules_.told_mean, rules_.told_sd);
    for (const Axis& axis : space_.axes) {
        const int step = axis.is_ordered && axis.labels.size() > 2 ? add(0, rules_.step_sd) : -1;
        std::vector<Uses> uses;
        for (int value = 0; value < static_cast<int>(axis.labels.size()); ++value) {
            if (value == axis.reference) {
                uses.emplace_back(space_.phases.size());
            } else {
                uses.push_back(make_lever(axis.priors[static_cast<std::size_t>(value)], value - axis.reference, step));
            }
        }
        values_.push_back(std::move(uses));
    }
    for (const PatchIdea& patch : space_.patches) patches_.push_back(make_lever(patch.prior, 0, -1));
    theta_ = mean_;
    fit(evidence);
    if (!space_.patches.empty()) {
        add_enablers();
        fit(evidence);
    }
    covariance_ = posterior_.inverse();
}

int TimeModel::add(double mean, double sd) {
    mean_.push_back(mean);
    precision_.push_back(1 / (sd * sd));
    return static_cast<int>(mean_.size()) - 1;
}

TimeModel::Uses TimeModel::make_lever(const LeverPrior& prior, int steps, int step_parameter) {
    Uses uses(space_.phases.size());
    const double share = share_of(space_.phases, prior.phases);
    const int common = add(reduction_for(prior.gain, share), rules_.common_sd);
    const int touched = static_cast<int>(std::count_if(space_.phases.begin(), space_.phases.end(),
                                                       [&](const auto& g) { return (g.phases & prior.phases) != 0; }));
    for (std::size_t g = 0; g < space_.phases.size(); ++g) {
        const unsigned mine = space_.phases[g].phases & prior.phases;
        if (mine == 0) continue;
        // A lever that touches one of several phases of a group reaches only a part of it.
        const double part =
            std::sqrt(static_cast<double>(std::popcount(mine)) / std::popcount(space_.phases[g].phases));
        uses[g].push_back({common, part});
        if (touched > 1) uses[g].push_back({add(0, rules_.own_sd), part});
        if (step_parameter >= 0) uses[g].push_back({step_parameter, part * steps});
        if (prior.told && share > 0) {
            const double scaled = std::clamp(*prior.told / share, -kMostReduction, kMostReduction);
            uses[g].push_back({told_, scaled});
        }
    }
    return uses;
}

// A patch may do nothing until one of the large levers is on.
void TimeModel::add_enablers() {
    struct Large {
        double gain = 0;
        int axis = 0, value = 0;
    };
    std::vector<Large> large;
    for (std::size_t axis = 0; axis < space_.axes.size(); ++axis) {
        for (std::size_t value = 0; value < space_.axes[axis].labels.size(); ++value) {
            if (static_cast<int>(value) == space_.axes[axis].reference || !space_.axes[axis].legal[value]) continue;
            Point point = reference_point(space_);
            point.values[axis] = static_cast<std::uint8_t>(value);
            const Prediction at = predict(point);
            large.push_back({std::abs(at.y) + std::sqrt(posterior_.inverse_form(at.gradient)), static_cast<int>(axis),
                             static_cast<int>(value)});
        }
    }
    std::sort(large.begin(), large.end(), [](const Large& a, const Large& b) {
        if (a.gain != b.gain) return a.gain > b.gain;
        return std::pair(a.axis, a.value) < std::pair(b.axis, b.value);
    });
    if (static_cast<int>(large.size()) > rules_.enablers) large.resize(static_cast<std::size_t>(rules_.enablers));
    for (int patch = 0; patch < static_cast<int>(space_.patches.size()); ++patch) {
        const unsigned phases = space_.patches[static_cast<std::size_t>(patch)].prior.phases;
        for (const Large& with : large) {
            const int parameter = add(0, rules_.enabling_sd);
            theta_.push_back(0);
            Enabled enabled{with.axis, with.value, patch, Uses(space_.phases.size())};
            for (std::size_t g = 0; g < space_.phases.size(); ++g) {
                if ((space_.phases[g].phases & phases) != 0) enabled.uses[g].push_back({parameter, 1});
            }
            enabled_.push_back(std::move(enabled));
        }
    }
}

template <class Visit>
void TimeModel::for_uses(const Point& point, Visit visit) const {
    for (std::size_t axis = 0; axis < point.values.size(); ++axis) {
        if (point.values[axis] != space_.axes[axis].reference) visit(values_[axis][point.values[axis]]);
    }
    bool is_patched = false;
    for (std::size_t i = 0; i < point.patches.size(); ++i) {
        if (point.patches[i] == 0) continue;
        is_patched = true;
        visit(patches_[i]);
    }
    if (!is_patched) return;
    for (const Enabled& enabled : enabled_) {
        if (point.patches[static_cast<std::size_t>(enabled.patch)] != 0 &&
            point.values[static_cast<std::size_t>(enabled.axis)] == enabled.value) {
            visit(enabled.uses);
        }
    }
}

TimeModel::Prediction TimeModel::predict(const Point& point) const {
    const std::size_t groups = space_.phases.size();
    std::vector<double> exponent(groups, 0.0);
    for_uses(point, [&](const Uses& uses) {
        for (std::size_t g = 0; g < groups; ++g) {
            for (const Use& use : uses[g]) exponent[g] += use.weight * theta_[static_cast<std::size_t>(use.parameter)];
        }
    });
    double time = 0;
    std::vector<double> part(groups);
    for (std::size_t g = 0; g < groups; ++g) time += part[g] = space_.phases[g].share * std::exp(-exponent[g]);
    Prediction result;
    result.y = -std::log(time);
    thread_local std::vector<double> dense;
    dense.assign(mean_.size(), 0.0);
    for_uses(point, [&](const Uses& uses) {
        for (std::size_t g = 0; g < groups; ++g) {
            const double slope = part[g] / time;
            for (const Use& use : uses[g]) dense[static_cast<std::size_t>(use.parameter)] += use.weight * slope;
        }
    });
    result.gradient.reserve(128);
    for (std::size_t i = 0; i < dense.size(); ++i) {
        if (dense[i] != 0) result.gradient.push_back({static_cast<int>(i), dense[i]});
    }
    return result;
}

void TimeModel::fit(const std::vector<TimeEvidence>& evidence) {
    const std::size_t size = mean_.size();
    std::vector<double> weights;
    const Point reference = reference_point(space_);
    for (const TimeEvidence& run : evidence) {
        int changes = distance(run.point, reference);
        for (const auto patch : run.point.patches) changes += patch;
        const double misfit = rules_.misfit * std::sqrt(static_cast<double>(std::max(changes, 1)));
        weights.push_back(1 / (run.sigma * run.sigma + misfit * misfit));
    }
    for (int step = 0; step < kSteps; ++step) {
        std::vector<SparseRow> rows;
        std::vector<double> information(size, 0.0);
        for (std::size_t i = 0; i < evidence.size(); ++i) {
            Prediction at = predict(evidence[i].point);
            double residual = evidence[i].y - at.y;
            for (const Term& term : at.gradient) {
                const auto p = static_cast<std::size_t>(term.feature);
                residual += term.value * (theta_[p] - mean_[p]);
            }
            for (const Term& term : at.gradient) {
                information[static_cast<std::size_t>(term.feature)] += term.value * residual * weights[i];
            }
            rows.push_back(std::move(at.gradient));
        }
        posterior_ = Cholesky::of_rows(precision_, rows, weights);
        const std::vector<double> shift = posterior_.solve(information);
        double moved = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const double next = mean_[i] + shift[i];
            moved = std::max(moved, std::abs(next - theta_[i]));
            theta_[i] = next;
        }
        if (moved < 1e-4 || evidence.empty()) break;
    }
}

double TimeModel::sd(const SparseRow& a, const SparseRow& b) const {
    return std::sqrt(std::max(quadratic_form(covariance_, difference(a, b)), 0.0));
}

TimeModel::Lever TimeModel::lever(int axis, int value) const {
    Point point = reference_point(space_);
    point.values[static_cast<std::size_t>(axis)] = static_cast<std::uint8_t>(value);
    const Prediction at = predict(point);
    return {at.y, sd(at.gradient, {})};
}

TimeModel::Lever TimeModel::patch(int index) const {
    Point point = reference_point(space_);
    point.patches[static_cast<std::size_t>(index)] = 1;
    const Prediction at = predict(point);
    return {at.y, sd(at.gradient, {})};
}

}  // namespace infrarsi
