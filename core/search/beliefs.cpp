#include "core/search/beliefs.h"

#include <cmath>

namespace infrarsi {

namespace {

constexpr double kSlopeVariance = 0.25;  // v0: the rules as a whole may be half as good, or worthless
constexpr double kMisfit = 0.01;         // per further setting: gains do not add exactly
constexpr double kMostExactRun = 0.003;  // no run is believed closer than 0.3 %
constexpr double kObservedShare = 0.02;  // σ_obs of the ledger, of the capacity (paper §4.1)
// How a knob's width is split between its slope and each value's own feature; squares sum to about 1.
constexpr double kTimeSlopeShare = 0.6, kTimeOwnShare = 0.8;
constexpr double kMemorySlopeShare = 0.98, kMemoryOwnShare = 0.2;  // memory is nearly proportional

// The capacity, or what stands in for it when nobody knows it.
double memory_scale(const SearchProblem& problem) {
    return problem.capacity_gib > 0 ? problem.capacity_gib : prior_scale(problem).memory_gib;
}

struct KnobWidth {
    double time = 0, memory = 0;  // per unit of the slope
};

KnobWidth slope_width(const Knob& knob, const PriorScale& scale) {
    KnobWidth width;
    for (const Value& value : knob.values) {
        const auto ratio = scale_ratio(knob, value);
        if (!ratio || same_effect(value, knob.reference)) continue;
        const SettingPrior prior = setting_prior(knob, value, scale);
        width.time = std::max(width.time, prior.sigma / std::abs(std::log2(*ratio)));
        width.memory = std::max(width.memory, prior.gib_sigma / std::max(std::abs(*ratio - 1), 0.5));
    }
    return {.time = kTimeSlopeShare * width.time, .memory = kMemorySlopeShare * width.memory};
}

FeatureSpace covered_space(const SearchProblem& problem, const std::vector<Outcome>& history,
                           const std::vector<Patch>& offered) {
    FeatureSpace space(*problem.contract);
    for (const Outcome& outcome : history) space.cover(space.canonical(outcome.candidate));
    space.cover({.settings = {}, .patches = offered});
    return space;
}

std::vector<SettingPrior> feature_priors(const SearchProblem& problem, const FeatureSpace& space) {
    const PriorScale scale = prior_scale(problem);
    std::vector<SettingPrior> priors;
    for (const Feature& feature : space.features()) {
        const Knob* knob = problem.contract->knob(feature.knob);
        if (feature.kind == FeatureKind::patch) {
            priors.push_back(patch_prior(feature.patch, scale));
        } else if (feature.kind == FeatureKind::slope) {
            const KnobWidth width = slope_width(*knob, scale);
            priors.push_back({.log_gain = 0, .sigma = width.time, .gib = 0, .gib_sigma = width.memory});
        } else if (knob == nullptr) {
            priors.push_back(setting_prior(Knob{.name = feature.knob}, feature.value, scale));
        } else {
            priors.push_back(setting_prior(*knob, feature.value, scale));
        }
    }
    // The slope takes its share of the width out of the values that it speaks for.
    for (std::size_t s = 0; s < priors.size(); ++s) {
        if (space.features()[s].kind != FeatureKind::slope) continue;
        const Knob* knob = problem.contract->knob(space.features()[s].knob);
        for (std::size_t i = 0; i < priors.size(); ++i) {
            const Feature& feature = space.features()[i];
            if (feature.kind != FeatureKind::setting || feature.knob != knob->name) continue;
            priors[s].phases = priors[i].phases;
            if (!scale_ratio(*knob, feature.value)) continue;
            priors[i].sigma *= kTimeOwnShare;
            priors[i].gib_sigma *= kMemoryOwnShare;
        }
    }
    return priors;
}

TimePrior time_prior(const std::vector<SettingPrior>& priors) {
    TimePrior result;
    for (const SettingPrior& prior : priors) {
        result.mean.push_back(prior.log_gain);
        result.sigma.push_back(prior.sigma);
        result.slope.push_back(prior.log_gain);
        result.phases.push_back(prior.phases);
    }
    result.slope_variance = kSlopeVariance;
    return result;
}

MemoryPrior memory_prior(const SearchProblem& problem, const std::vector<SettingPrior>& priors) {
    const double scale = memory_scale(problem);
    MemoryPrior result;
    for (const SettingPrior& prior : priors) {
        result.mean.push_back(prior.gib);
        result.sigma.push_back(prior.gib_sigma);
    }
    result.sigma_obs = kObservedShare * scale;
    // An unmeasured reference is somewhere below the capacity: it ran.
    result.base = problem.reference_gib > 0 ? problem.reference_gib : 0.7 * scale;
    result.base_sigma = problem.reference_gib > 0 ? result.sigma_obs : 0.3 * scale;
    return result;
}

// All batch knobs but the one named micro_batch (or the first): they follow from it.
std::set<std::string> follower_knobs(const SearchProblem& problem) {
    if (problem.legal == nullptr) return {};
    const std::vector<std::string>& knobs = problem.legal->batch_knobs();
    std::set<std::string> followers(knobs.begin(), knobs.end());
    std::string leader = knobs.empty() ? "" : knobs.front();
    for (const std::string& name : knobs) {
        const Knob* knob = problem.contract->knob(name);
        if (knob != nullptr && canonical_mechanism(knob->mechanism) == "batch.micro_batch") leader = name;
    }
    followers.erase(leader);
    return followers;
}

}  // namespace

Beliefs::Beliefs(const SearchProblem& problem, const std::vector<Outcome>& history, const std::vector<Patch>& offered)
    : problem_(problem),
      space_(covered_space(problem, history, offered)),
      priors_(feature_priors(problem, space_)),
      followers_(follower_knobs(problem)),
      time_(time_prior(priors_), share_table(problem.phases)),
      conflicts_({}, {}, {}) {
    count(history);
    learn_time(history);
    learn_memory(history);
    learn_conflicts(history);
}

void Beliefs::count(const std::vector<Outcome>& history) {
    for (const Outcome& outcome : history) {
        const Candidate candidate = space_.canonical(outcome.candidate);
        // A host's fault is retried once; after the second the candidate counts as visited.
        visits_[identity(candidate)] += outcome.kind == OutcomeKind::transient ? 1 : 2;
        if (outcome.kind == OutcomeKind::transient) continue;
        ++trials_;
        ++stalled_;
        if (!candidate.settings.empty()) ++setting_trials_;
        for (const Term& term : space_.time_row(candidate)) tried_.insert(term.feature);
        out_of_memory_in_a_row_ = outcome.kind == OutcomeKind::oom ? out_of_memory_in_a_row_ + 1 : 0;
        if (outcome.kind == OutcomeKind::oom) out_of_memory_.insert(out_of_memory_.begin(), candidate);
        if (outcome.kind != OutcomeKind::valid) continue;
        for (const Term& term : space_.time_row(candidate)) measured_.insert(term.feature);
        if (outcome.log_speedup > incumbent_gain_ + problem_.gate) stalled_ = 0;
        if (outcome.log_speedup > incumbent_gain_) {
            incumbent_gain_ = outcome.log_speedup;
            incumbent_ = candidate;
        }
    }
    incumbent_row_ = space_.time_row(incumbent_);
}

void Beliefs::learn_time(const std::vector<Outcome>& history) {
    std::vector<SparseRow> rows;
    std::vector<double> ys;
    std::vector<double> sigmas;
    for (const Outcome& outcome : history) {
        if (outcome.kind != OutcomeKind::valid) continue;
        const Candidate candidate = space_.canonical(outcome.candidate);
        rows.push_back(space_.time_row(candidate));
        ys.push_back(outcome.log_speedup);
        const double changes = static_cast<double>(items(candidate).size());
        const double misfit = kMisfit * std::sqrt(std::max(changes - 1, 0.0));
        sigmas.push_back(std::hypot(std::max({outcome.sigma, problem_.sigma_pair, kMostExactRun}), misfit));
    }
    time_.observe_all(rows, ys, sigmas);
    incumbent_prediction_ = time_.predict(incumbent_row_).mean;
}

void Beliefs::learn_memory(const std::vector<Outcome>& history) {
    std::vector<MemoryEvidence> evidence;
    for (const Outcome& outcome : history) {
        const SparseRow row = space_.memory_row(space_.canonical(outcome.candidate));
        if (outcome.kind == OutcomeKind::valid || outcome.kind == OutcomeKind::rejected) {
            if (outcome.peak_gib) evidence.push_back({row, MemoryKind::measured, *outcome.peak_gib, 0});
        } else if (outcome.kind == OutcomeKind::oom) {
            // Allocated plus requested is a loose bound: the run may have died long before its peak. It did not fit,
            // which is the tighter bound where that is larger.
            const double bound = std::max(outcome.need_gib.value_or(0), problem_.capacity_gib);
            if (bound > 0) evidence.push_back({row, MemoryKind::at_least, bound, 0});
        }
    }
    memory_ = MemoryLedger::fit(memory_prior(problem_, priors_), std::move(evidence));
}

void Beliefs::learn_conflicts(const std::vector<Outcome>& history) {
    std::vector<Items> passes;
    std::vector<Items> failures;
    std::set<int> patches;
    for (const Outcome& outcome : history) {
        const Items of_candidate = items(space_.canonical(outcome.candidate));
        if (outcome.kind == OutcomeKind::valid) passes.push_back(of_candidate);
        // A setting that did not take effect fails like one that crashes: what it does not go with is worth knowing.
        if (outcome.kind == OutcomeKind::failed || outcome.kind == OutcomeKind::rejected ||
            outcome.kind == OutcomeKind::ineffective) {
            failures.push_back(of_candidate);
        }
    }
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (space_.features()[i].kind == FeatureKind::patch) patches.insert(static_cast<int>(i));
    }
    conflicts_ = Conflicts(std::move(passes), failures, std::move(patches));
}

Estimate Beliefs::estimate(const Candidate& candidate) const {
    const SparseRow row = space_.time_row(candidate);
    const SparseRow memory_row = space_.memory_row(candidate);
    Estimate estimate;
    estimate.delta = time_.predict(row).mean - incumbent_prediction_;
    estimate.gain = incumbent_gain_ + estimate.delta;
    estimate.sd = time_.sd(difference(row, incumbent_row_));
    estimate.p_fits = memory_.p_fits(memory_row, problem_.capacity_gib);
    estimate.p_passes = conflicts_.p_passes(items_of(row));
    estimate.need = memory_.need(memory_row);
    return estimate;
}

Gib Beliefs::memory_change(const Candidate& from, const Candidate& to) const {
    return memory_.change(difference(space_.memory_row(to), space_.memory_row(from)));
}

bool Beliefs::is_visited(const Candidate& candidate) const {
    if (candidate.is_reference()) return true;
    const auto found = visits_.find(identity(candidate));
    return found != visits_.end() && found->second >= 2;
}

std::vector<int> Beliefs::identity(const Candidate& candidate) const {
    std::vector<int> result;
    for (const Term& term : space_.time_row(candidate)) result.push_back(term.feature);
    return result;
}

bool Beliefs::is_measured(const std::string& knob, const Value& value) const {
    for (const Term& term : space_.time_row({.settings = {{knob, value}}, .patches = {}})) {
        if (space_.features()[static_cast<std::size_t>(term.feature)].kind != FeatureKind::setting) continue;
        return measured_.contains(term.feature);
    }
    return false;
}

bool Beliefs::is_measured(const Patch& patch) const {
    const SparseRow row = space_.time_row({.settings = {}, .patches = {patch}});
    return !row.empty() && measured_.contains(row.front().feature);
}

bool Beliefs::is_tried(const Patch& patch) const {
    const SparseRow row = space_.time_row({.settings = {}, .patches = {patch}});
    return !row.empty() && tried_.contains(row.front().feature);
}

Items Beliefs::items(const Candidate& candidate) const {
    return items_of(space_.time_row(candidate));
}

Items Beliefs::items_of(const SparseRow& time_row) const {
    Items result;
    for (const Term& term : time_row) {
        const Feature& feature = space_.features()[static_cast<std::size_t>(term.feature)];
        if (feature.kind == FeatureKind::slope || followers_.contains(feature.knob)) continue;
        result.push_back(term.feature);
    }
    return result;
}

std::string Beliefs::words(const Items& items) const {
    std::string result;
    for (const int item : items) {
        const Feature& feature = space_.features()[static_cast<std::size_t>(item)];
        if (!result.empty()) result += " with ";
        if (feature.kind == FeatureKind::patch) {
            result += fmt::format("patch \"{}\"", feature.patch.title);
        } else {
            result += feature.knob + "=" + to_text(feature.value);
        }
    }
    return result;
}

bool Beliefs::is_big(const std::string& name) const {
    const Knob* knob = contract().knob(name);
    if (knob == nullptr || followers_.contains(name)) return false;
    const PriorScale scale = prior_scale(problem_);
    for (const Value& value : knob->values) {
        if (same_effect(value, knob->reference)) continue;
        const SparseRow row = space_.time_row({.settings = {{name, value}}, .patches = {}});
        if (std::abs(setting_prior(*knob, value, scale).log_gain) > problem_.gate) return true;
        if (std::abs(time_.linear_mean(row)) > problem_.gate) return true;
    }
    return false;
}

}  // namespace infrarsi
