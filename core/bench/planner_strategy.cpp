#include "core/bench/planner_strategy.h"

#include <cmath>

#include "core/search/mechanism_rules.h"
#include "core/search/planner.h"

namespace infrarsi::bench {

namespace {

constexpr int kScreenedUpdates = 2;        // of the window, in a short run
constexpr double kDeclaredMean = 1 / 0.9;  // outsiders understate memory a little
constexpr double kDeclaredSpread = 0.2, kDeclaredGib = 1.1;

LeverPrior prior_of(const std::optional<std::string>& mechanism, const sim::Atom& atom) {
    const MechanismRule rule = mechanism_rule(mechanism.value_or(""));
    LeverPrior prior;
    prior.phases = rule.phases;
    prior.gain = rule.gain;
    prior.told = atom.prior_log_gain;
    prior.gib = kDeclaredMean * atom.declared_gib;
    prior.gib_sigma = std::hypot(kDeclaredGib, kDeclaredSpread * atom.declared_gib);
    return prior;
}

std::vector<PhaseGroup> phases_of(const DoctorView& doctor) {
    std::vector<PhaseGroup> groups;
    if (doctor.profiles.empty()) return {{}};
    double sum = 0;
    for (const double seconds : doctor.profiles.front().operator_s) sum += seconds;
    for (std::size_t p = 0; p < sim::kPhaseCount; ++p) {
        groups.push_back({1U << p, doctor.profiles.front().operator_s[p] / sum});
    }
    return groups;
}

Space space_of(const Rehearsal& rehearsal) {
    const JobView& job = rehearsal.job();
    Space space;
    for (const KnobView& knob : job.knobs) {
        Axis axis;
        axis.name = knob.name;
        axis.reference = knob.reference;
        axis.is_ordered = knob.is_ordered;
        axis.scales_activations = scales_activations(knob.mechanism.value_or(""));
        for (const ValueView& value : knob.values) {
            axis.labels.push_back(to_text(value.value));
            axis.legal.push_back(value.is_legal);
        }
        axis.priors.resize(knob.values.size());
        space.axes.push_back(std::move(axis));
    }
    for (const PatchView& patch : job.patches) space.patches.push_back({patch.id, {}});
    for (const sim::Atom& atom : job.atoms) {
        if (atom.setting) {
            const auto knob = static_cast<std::size_t>(atom.setting->knob);
            space.axes[knob].priors[static_cast<std::size_t>(atom.setting->value)] =
                prior_of(job.knobs[knob].mechanism, atom);
        } else {
            const auto patch = static_cast<std::size_t>(*atom.patch);
            space.patches[patch].prior = prior_of(job.patches[patch].mechanism, atom);
        }
    }
    space.phases = phases_of(rehearsal.doctor());
    space.reference_gib = rehearsal.doctor().peak_gib;
    space.capacity_gib = job.capacity_gib;
    space.sigma = rehearsal.doctor().noise.sigma_pair;
    space.gate = std::max(0.02, 2 * space.sigma);
    return space;
}

sim::Candidate candidate_of(const Point& point) {
    sim::Candidate candidate;
    for (const auto value : point.values) candidate.values.push_back(value);
    for (std::size_t i = 0; i < point.patches.size(); ++i) {
        if (point.patches[i] != 0) candidate.add_patch(static_cast<int>(i));
    }
    return candidate;
}

// Equal for equal causes, as far as the receipt shows them.
int kind_of(const Trial& trial) {
    std::string cause;
    if (!trial.receipt.execution.timed_out.empty()) {
        cause = trial.receipt.execution.timed_out;
    } else if (!trial.receipt.failures.empty()) {
        cause = trial.receipt.failures.front().failure_class + trial.receipt.failures.front().text;
    } else if (trial.verdict) {
        cause = trial.verdict->reason.substr(0, trial.verdict->reason.find(':'));
    }
    return static_cast<int>(std::hash<std::string>()(cause) % 1'000'000'007);
}

Run run_of(const Plan& plan, const Trial& trial, double sigma) {
    Run run;
    run.point = plan.point;
    run.updates = plan.updates;
    run.cost = trial.answer.cost_units;
    run.broken = trial.failed_patches;
    run.sigma = sigma;
    if (!run.broken.empty()) {
        run.kind = RunKind::patch_failed;
        return run;
    }
    if (trial.log_gain) {
        run.has_time = true;
        run.y = *trial.log_gain;
    }
    if (trial.answer.memory) {
        run.peak_gib = trial.answer.memory->peak_gib;
        run.thrashed = trial.answer.memory->alloc_retries > 0;
    }
    run.failure_kind = kind_of(trial);
    if (trial.is_valid()) {
        run.kind = RunKind::valid;
    } else if (trial.ran_out_of_memory()) {
        run.kind = RunKind::oom;
        if (trial.receipt.oom) run.need_gib = trial.receipt.oom->need_gib;
    } else {
        run.kind = run.has_time ? RunKind::rejected : RunKind::failed;
    }
    return run;
}

Delivery play(Rehearsal& rehearsal, bool short_runs) {
    const JobView& job = rehearsal.job();
    const Space space = space_of(rehearsal);
    SearchSetting setting;
    setting.costs.updates = job.updates;
    setting.costs.warmup = job.warmup;
    setting.patches.most_attempts = job.max_attempts;
    setting.budget = job.budget_units;
    setting.short_updates = short_runs ? std::min(job.warmup + kScreenedUpdates, job.updates) : 0;
    setting.seed = rehearsal.luck("infrarsi").next();
    std::vector<Run> history;
    while (rehearsal.may_start()) {
        const auto plan = next_plan(space, setting, history);
        if (!plan) break;
        TrialPlan trial_plan{candidate_of(plan->point), sim::Support::checked, std::nullopt};
        if (plan->updates > 0) trial_plan.updates = plan->updates;
        const auto trial = rehearsal.run(trial_plan);
        if (!trial) break;
        // One window update carries the noise that a full window would average out.
        const double window = plan->updates > 0 ? std::sqrt((job.updates - job.warmup) / double{kScreenedUpdates}) : 1;
        history.push_back(run_of(*plan, *trial, space.sigma * window));
        const std::vector<Point> best = finalists(space, setting, history, 1);
        if (!best.empty()) rehearsal.set_incumbent(candidate_of(best.front()));
    }
    std::vector<sim::Candidate> candidates;
    for (const Point& point : finalists(space, setting, history, kMostFinalists)) {
        candidates.push_back(candidate_of(point));
    }
    return {rehearsal.promote(candidates).winner};
}

}  // namespace

std::vector<Strategy> planner_strategies() {
    return {{"infrarsi", [](Rehearsal& rehearsal) { return play(rehearsal, true); }},
            {"infrarsi-full", [](Rehearsal& rehearsal) { return play(rehearsal, false); }}};
}

}  // namespace infrarsi::bench
