#include "core/search/knowledge.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace infrarsi {

namespace {

constexpr double kObservedShare = 0.01;   // σ_obs of the ledger, of the capacity
constexpr double kActivationShare = 0.2;  // of the reference's peak; what the activation axes multiply
constexpr double kThrashSlowdown = 0.05;
constexpr double kThrashFrom = 0.965;
constexpr double kBelieved = 0.5;
constexpr double kDaring = 0.3;      // exponent on the chance to start
constexpr double kLateDaring = 0.7;  // and on the chance that the numbers hold

std::vector<TimeEvidence> time_evidence(const Space& space, const std::vector<Run>& history) {
    std::vector<TimeEvidence> evidence;
    for (const Run& run : history) {
        if (!run.has_time) continue;
        const double sigma = std::hypot(std::max(run.sigma, 0.002), run.thrashed ? kThrashSlowdown : 0);
        evidence.push_back({run.point, run.y + (run.thrashed ? kThrashSlowdown : 0), std::max(sigma, space.sigma)});
    }
    return evidence;
}

bool is_full(const SearchSetting& setting, const Run& run) {
    return run.updates <= 0 || run.updates >= setting.costs.updates;
}

std::vector<BlameTrial> blame_trials(const SearchSetting& setting, const std::vector<Run>& history) {
    std::vector<BlameTrial> trials;
    for (const Run& run : history) {
        using Stage = BlameTrial::Stage;
        if (run.kind != RunKind::valid && run.kind != RunKind::rejected && run.kind != RunKind::failed) continue;
        const Stage stage = run.kind == RunKind::valid      ? Stage::passed
                            : run.kind == RunKind::rejected ? Stage::late
                                                            : Stage::early;
        trials.push_back({&run.point, stage, run.failure_kind, is_full(setting, run)});
    }
    return trials;
}

double normal_density(double z) {
    return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

double normal_below(double z) {
    return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

}  // namespace

double run_share(const Costs& costs, int updates) {
    if (updates <= 0 || updates >= costs.updates) return 1;
    return costs.startup_share + (1 - costs.startup_share) * updates / costs.updates;
}

Knowledge::Knowledge(const Space& space, const SearchSetting& setting, const std::vector<Run>& history)
    : space_(space),
      setting_(setting),
      history_(history),
      time_(space, time_evidence(space, history)),
      blame_(space, blame_trials(setting, history)),
      works_(space.patches.size(), false),
      attempts_(space.patches.size(), 0),
      incumbent_(reference_point(space)) {
    count();
    choose_incumbent();
    learn_memory();
    incumbent_at_ = time_.predict(incumbent_);
}

void Knowledge::count() {
    visited_.insert(reference_point(space_));
    for (const Run& run : history_) {
        spent_ += run.cost;
        if (run.kind == RunKind::transient) continue;
        for (std::size_t patch = 0; patch < works_.size(); ++patch) {
            if (run.point.patches[patch] == 0 || works_[patch]) continue;
            ++attempts_[patch];
            ++tries_;
            if (run.kind == RunKind::patch_failed &&
                std::find(run.broken.begin(), run.broken.end(), static_cast<int>(patch)) != run.broken.end()) {
                continue;
            }
            works_[patch] = true;
            ++successes_;
        }
        if (run.kind == RunKind::patch_failed) continue;
        visited_.insert(run.point);
    }
}

// The fastest run that is believed to hold at full length.
void Knowledge::choose_incumbent() {
    std::set<Point> refuted;
    for (const Run& run : history_) {
        if (run.kind == RunKind::rejected || run.kind == RunKind::failed) refuted.insert(run.point);
    }
    for (const Run& run : history_) {
        if (run.kind == RunKind::transient || run.kind == RunKind::patch_failed) continue;
        ++stalled_;
        if (run.kind != RunKind::valid || refuted.contains(run.point)) continue;
        const bool full = is_full(setting_, run);
        if (full) confirmed_y_ = std::max(confirmed_y_, run.y);
        if (run.point == incumbent_ && full) is_confirmed_ = true;
        if (run.y <= incumbent_y_ || run.point == incumbent_) continue;
        if (!full && blame_.p_holds(run.point) < kBelieved) continue;
        if (run.y > incumbent_y_ + space_.gate) stalled_ = 0;
        incumbent_y_ = run.y;
        incumbent_ = run.point;
        is_confirmed_ = full;
    }
}

std::vector<Point> finalists(const Space& space, const SearchSetting& setting, const std::vector<Run>& history,
                             int most) {
    const Knowledge knowledge(space, setting, history);
    std::map<Point, double> best;
    for (const Run& run : history) {
        if (run.kind != RunKind::valid) continue;
        const bool believed = is_full(setting, run) || knowledge.blame().p_holds(run.point) >= kBelieved;
        if (believed && run.y > space.gate) best[run.point] = std::max(best[run.point], run.y);
    }
    for (const Run& run : history) {
        if (run.kind == RunKind::rejected || run.kind == RunKind::failed) best.erase(run.point);
    }
    std::vector<std::pair<Point, double>> sorted(best.begin(), best.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    std::vector<Point> points;
    for (const auto& [point, y] : sorted) {
        if (static_cast<int>(points.size()) < most) points.push_back(point);
    }
    return points;
}

SparseRow Knowledge::memory_row(const Point& point) const {
    SparseRow row;
    for (std::size_t axis = 0; axis < point.values.size(); ++axis) {
        if (point.values[axis] != space_.axes[axis].reference) {
            row.push_back({memory_features_[axis][point.values[axis]], 1});
        }
    }
    for (std::size_t i = 0; i < point.patches.size(); ++i) {
        if (point.patches[i] != 0) row.push_back({first_patch_feature_ + static_cast<int>(i), 1});
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        if (point.values[pairs_[i].axis_a] == pairs_[i].value_a &&
            point.values[pairs_[i].axis_b] == pairs_[i].value_b) {
            row.push_back({first_pair_feature_ + static_cast<int>(i), 1});
        }
    }
    return row;
}

void Knowledge::learn_memory() {
    MemoryPrior prior;
    const double scale = space_.capacity_gib > 0 ? space_.capacity_gib : std::max(space_.reference_gib, 1.0);
    prior.base = space_.reference_gib > 0 ? space_.reference_gib : 0.7 * scale;
    prior.base_sigma = space_.reference_gib > 0 ? 0.005 * scale : 0.3 * scale;
    prior.sigma_obs = kObservedShare * scale;
    const auto feature = [&](double mean, double sd) {
        prior.mean.push_back(mean);
        prior.sigma.push_back(sd);
        return static_cast<int>(prior.mean.size()) - 1;
    };
    for (const Axis& axis : space_.axes) {
        memory_features_.emplace_back();
        for (std::size_t value = 0; value < axis.labels.size(); ++value) {
            const LeverPrior& lever = axis.priors[value];
            memory_features_.back().push_back(feature(lever.gib, std::max(lever.gib_sigma, 1e-3)));
        }
    }
    first_patch_feature_ = static_cast<int>(prior.mean.size());
    for (const PatchIdea& patch : space_.patches) feature(patch.prior.gib, std::max(patch.prior.gib_sigma, 1e-3));
    first_pair_feature_ = static_cast<int>(prior.mean.size());
    const double activations = kActivationShare * prior.base;
    for (std::size_t a = 0; a < space_.axes.size(); ++a) {
        for (std::size_t b = a + 1; b < space_.axes.size(); ++b) {
            if (!space_.axes[a].scales_activations || !space_.axes[b].scales_activations) continue;
            for (int va = 0; va < static_cast<int>(space_.axes[a].labels.size()); ++va) {
                for (int vb = 0; vb < static_cast<int>(space_.axes[b].labels.size()); ++vb) {
                    if (va == space_.axes[a].reference || vb == space_.axes[b].reference) continue;
                    const double product = space_.axes[a].priors[static_cast<std::size_t>(va)].gib *
                                           space_.axes[b].priors[static_cast<std::size_t>(vb)].gib / activations;
                    pairs_.push_back({a, b, va, vb, product});
                    feature(product, 0.5 * std::abs(product) + 0.02 * scale);
                }
            }
        }
    }
    std::vector<MemoryEvidence> evidence;
    for (const Run& run : history_) {
        if (run.peak_gib > 0) {
            evidence.push_back({memory_row(run.point), MemoryKind::measured, run.peak_gib, 0});
        } else if (run.kind == RunKind::oom) {
            const double bound = std::max(run.need_gib, space_.capacity_gib);
            if (bound > 0) evidence.push_back({memory_row(run.point), MemoryKind::at_least, bound, 0});
        }
    }
    memory_ = MemoryLedger::fit(std::move(prior), std::move(evidence));
    memory_.tabulate();
}

double Knowledge::chance_of(std::size_t patch) const {
    if (works_[patch]) return 1;
    const PatchChances& chances = setting_.patches;
    // Two prior attempts' worth of the rule, then what was seen.
    const double rule = std::min(0.95, chances.first + chances.per_attempt * attempts_[patch]);
    const double seen = (2 * rule + successes_) / (2.0 + tries_);
    return std::clamp(seen + (rule - chances.first), 0.02, 0.98);
}

const Guess& Knowledge::guess(const Point& point) const {
    const auto [known, is_new] = guesses_.try_emplace(point);
    if (is_new) known->second = compute(point);
    return known->second;
}

Guess Knowledge::compute(const Point& point) const {
    const TimeModel::Prediction at = time_.predict(point);
    const SparseRow row = memory_row(point);
    Guess guess;
    guess.delta = at.y - incumbent_at_.y;
    guess.sd = time_.sd(at.gradient, incumbent_at_.gradient);
    guess.need = memory_.need(row);
    guess.p_fits = memory_.p_fits(guess.need, space_.capacity_gib);
    if (space_.capacity_gib > 0) {
        const double zone = guess.p_fits - memory_.p_fits(guess.need, kThrashFrom * space_.capacity_gib);
        guess.delta -= kThrashSlowdown * std::max(zone, 0.0);
    }
    guess.y = incumbent_y_ + guess.delta;
    guess.p_passes = blame_.p_passes(point);
    guess.p_holds = blame_.p_holds(point);
    for (std::size_t i = 0; i < point.patches.size(); ++i) {
        if (point.patches[i] != 0) guess.p_works *= chance_of(i);
    }
    return guess;
}

double Knowledge::run_cost(const Guess& guess, int updates) const {
    return run_share(setting_.costs, updates) * std::exp(-guess.y);
}

double Knowledge::improvement(const Guess& guess) {
    if (guess.sd <= 1e-9) return std::max(guess.delta, 0.0);
    const double z = guess.delta / guess.sd;
    return guess.delta * normal_below(z) + guess.sd * normal_density(z);
}

double Knowledge::worth(const Guess& guess) const {
    const double runs = run_cost(guess, setting_.short_updates);
    const Costs& costs = setting_.costs;
    const double starts = guess.p_works;
    const double cost = (1 - starts) * costs.patch_failed +
                        starts * ((1 - guess.p_fits) * costs.oom +
                                  guess.p_fits * ((1 - guess.p_passes) * costs.failed + guess.p_passes * runs));
    // A failure at the start is not worth nothing: it tells who is to blame, and what hides behind may be large.
    const double starts_well = guess.p_passes / std::max(guess.p_holds, 1e-12);
    const double chance =
        guess.p_fits * guess.p_works * std::pow(starts_well, kDaring) * std::pow(guess.p_holds, kLateDaring);
    return chance * improvement(guess) / std::max(cost, 0.02);
}

Gib Knowledge::memory_change(const Point& from, const Point& to) const {
    return memory_.change(difference(memory_row(to), memory_row(from)));
}

}  // namespace infrarsi
