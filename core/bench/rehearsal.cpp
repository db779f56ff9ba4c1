#include "core/bench/rehearsal.h"

#include <algorithm>
#include <cmath>

#include "core/measure/window.h"

namespace infrarsi::bench {

namespace {

constexpr int kDoctorRuns = 3;
constexpr double kGuessNoise = 0.03;  // of an informed guess, log gain

JobView view_of(const sim::Workload& workload, std::uint64_t seed, double budget_units) {
    JobView job;
    job.name = workload.name;
    for (const sim::Knob& knob : workload.knobs) {
        KnobView view{knob.name, knob.mechanism, knob.is_ordered, knob.reference, {}};
        for (const sim::KnobValue& value : knob.values) view.values.push_back({value.value, value.is_legal});
        job.knobs.push_back(std::move(view));
    }
    for (const sim::Patch& patch : workload.patches) job.patches.push_back({patch.id, patch.mechanism});
    job.atoms = sim::draw_beliefs(workload, seed).atoms;
    job.contract = simulated_contract(workload);
    job.capacity_gib = workload.device.capacity_gib;
    job.updates = workload.job.updates;
    job.warmup = workload.job.warmup;
    job.max_attempts = workload.prior.max_attempts;
    job.budget_units = budget_units;
    return job;
}

}  // namespace

bool JobView::is_legal(const sim::Atom& atom) const {
    if (!atom.setting) return true;
    const KnobView& knob = knobs[static_cast<std::size_t>(atom.setting->knob)];
    return knob.values[static_cast<std::size_t>(atom.setting->value)].is_legal;
}

Rehearsal::Rehearsal(const sim::Workload& workload, std::uint64_t seed, double budget_units, const Clock& clock)
    : workload_(workload), seed_(seed), clock_(clock), simulator_(workload, seed) {
    const Stopwatch watch(*this);
    job_ = view_of(workload, seed, budget_units);
    attempts_.resize(workload.patches.size());
    run_doctor();
}

sim::Candidate Rehearsal::reference() const {
    return sim::reference_candidate(workload_);
}

void Rehearsal::run_doctor() {
    sim::Request request;
    request.candidate = reference();
    request.profile = true;
    for (int run = 0; run < kDoctorRuns; ++run) {
        const sim::Answer answer = simulator_.answer(request);
        Receipt receipt = simulated_receipt(workload_, request.candidate, answer);
        receipt.role = "reference";
        const auto window = window_stats(receipt);
        INFRARSI_CHECK(window && answer.status == sim::Outcome::completed, "the reference of a simulated job runs");
        doctor_.log_step_s += std::log(window->mean_s) / kDoctorRuns;
        doctor_.peak_gib = std::max(doctor_.peak_gib, *receipt.memory.peak_gib);
        if (answer.profile) doctor_.profiles.push_back(*answer.profile);
        doctor_.runs.push_back(std::move(receipt));
    }
    doctor_.noise = estimate_noise(doctor_.runs);
}

const ReferenceEvidence& Rehearsal::evidence(int updates) {
    const auto [found, is_new] = evidence_.try_emplace(updates);
    if (is_new) {
        ReferenceEvidence& evidence = found->second;
        evidence.noise = doctor_.noise;
        evidence.reference = first_updates(doctor_.runs.front(), updates);
        for (std::size_t i = 1; i < doctor_.runs.size(); ++i) {
            evidence.repeats.push_back(first_updates(doctor_.runs[i], updates));
        }
    }
    return found->second;
}

Expected<void> Rehearsal::check(const TrialPlan& plan) const {
    const auto& values = plan.candidate.values;
    const std::size_t patches = job_.patches.size();
    bool fits = values.size() == job_.knobs.size() &&
                (patches >= sim::kMostPatches || (plan.candidate.patches >> patches) == 0);
    for (std::size_t k = 0; fits && k < values.size(); ++k) {
        fits = values[k] >= 0 && values[k] < static_cast<int>(job_.knobs[k].values.size());
    }
    if (!fits) return fail(ErrorKind::invalid_input, "the plan names no candidate of {}", job_.name);
    if (plan.updates && (*plan.updates < 1 || *plan.updates > job_.updates)) {
        return fail(ErrorKind::invalid_input, "a trial has 1 to {} updates, not {}", job_.updates, *plan.updates);
    }
    if (!may_start()) {
        return fail(ErrorKind::resource, "{:.2f} of {:.2f} units are spent: no trial may start", spent_units_,
                    job_.budget_units);
    }
    for (std::size_t i = 0; i < job_.patches.size(); ++i) {
        const int patch = static_cast<int>(i);
        if (!plan.candidate.has_patch(patch) || may_attempt(patch)) continue;
        return fail(ErrorKind::conflict, "patch {} failed {} times and may not be attempted again", job_.patches[i].id,
                    job_.max_attempts);
    }
    return {};
}

void Rehearsal::attempt_patches(Trial& trial, sim::Request& request) {
    for (std::size_t i = 0; i < job_.patches.size(); ++i) {
        const int patch = static_cast<int>(i);
        if (!trial.plan.candidate.has_patch(patch) || works(patch)) continue;
        const int attempt = ++attempts_[i];
        request.attempts.push_back({patch, attempt, trial.plan.support});
        if (sim::attempt_works(workload_, seed_, patch, attempt, trial.plan.support)) {
            working_ |= std::uint64_t{1} << patch;
        } else {
            trial.failed_patches.push_back(patch);
        }
    }
}

void Rehearsal::judge_trial(Trial& trial) {
    trial.receipt = simulated_receipt(workload_, trial.plan.candidate, trial.answer);
    if (!trial.failed_patches.empty()) return;
    trial.verdict = judge(trial.receipt, evidence(trial.receipt.updates), job_.contract.invariants);
    const auto window = window_stats(trial.receipt);
    if (trial.completed() && window) trial.log_gain = doctor_.log_step_s - std::log(window->mean_s);
}

Expected<Trial> Rehearsal::run(const TrialPlan& plan) {
    const Stopwatch watch(*this);
    INFRARSI_TRY(check(plan));
    Trial trial;
    trial.plan = plan;
    sim::Request request;
    request.candidate = plan.candidate;
    request.updates = plan.updates;
    attempt_patches(trial, request);
    trial.answer = simulator_.answer(request);
    spent_units_ += trial.answer.cost_units;
    ++trials_;
    judge_trial(trial);
    return trial;
}

void Rehearsal::charge_review() {
    spent_units_ += workload_.costs.reviewed;
    ++trials_;
}

void Rehearsal::set_incumbent(const sim::Candidate& candidate) {
    incumbents_.push_back({spent_units_, trials_, candidate});
}

sim::RandomStream Rehearsal::luck(std::string_view strategy) const {
    return sim::RandomStream({workload_.name, std::to_string(seed_), "strategy", strategy});
}

std::vector<double> Rehearsal::informed_guesses(AgentKey) const {
    sim::RandomStream luck({workload_.name, std::to_string(seed_), "judge"});
    std::vector<double> guesses;
    for (const sim::Atom& atom : job_.atoms) {
        guesses.push_back(sim::true_log_gain(workload_, atom) + kGuessNoise * luck.normal());
    }
    return guesses;
}

double Rehearsal::familiarity(AgentKey) const {
    return workload_.prior.familiarity;
}

}  // namespace infrarsi::bench
