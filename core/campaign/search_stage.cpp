// The search loop: budget, targets, proposals, trials (DESIGN §8). The controller decides; this file pays.

#include <nlohmann/json.hpp>

#include "core/campaign/impl.h"
#include "core/search/controller.h"

namespace infrarsi {

using nlohmann::json;

namespace {

constexpr int kDefaultScreens = 16;
constexpr int kTransientRetries = 1;

class GivenPatches final : public CandidateSource {
public:
    explicit GivenPatches(std::vector<Patch> patches) : patches_(std::move(patches)) {}
    [[nodiscard]] std::vector<Patch> patches(const std::vector<Outcome>&) override { return patches_; }

private:
    std::vector<Patch> patches_;
};

int screen_budget(const Budget& budget) {
    if (budget.screens) return *budget.screens;
    return budget.wallclock_s || budget.gpu_hours ? 1'000'000 : kDefaultScreens;
}

double device_hours(const CampaignState& state) {
    double seconds = 0;
    for (const auto& cost : state.ledger()) seconds += cost.device_s;
    return seconds / 3600;
}

double capacity_gib(const Contract& contract, const CampaignState& state) {
    if (contract.invariants.memory_cap_gib) return *contract.invariants.memory_cap_gib;
    const auto memory = state.environment.find("device_memory_gib");
    return memory == state.environment.end() ? 0 : to_number(value_from_text(memory->second)).value_or(0);
}

// Why the search must stop before another trial, or nothing. Wall-clock and device budgets keep a reserve for
// promotion: one block of four runs (DESIGN §7.2).
std::optional<std::string> why_stop(const Contract& contract, const CampaignState& state, double elapsed_s) {
    const Budget& budget = contract.budget;
    const int screens = screen_budget(budget);
    if (state.screens_used() >= screens) return fmt::format("the budget of {} full runs is used", screens);
    const double run_s = state.doctor->run_s;
    const double reserve_s = 4 * run_s;
    if (budget.wallclock_s && elapsed_s + run_s + reserve_s > *budget.wallclock_s) {
        return fmt::format("the wall-clock budget of {:.0f} s is used, less the reserve for verification",
                           *budget.wallclock_s);
    }
    const auto* reference = state.trial("ref-1");
    const double devices = reference && reference->cost_s > 0 ? reference->device_s / reference->cost_s : 1;
    if (budget.gpu_hours && device_hours(state) + devices * (run_s + reserve_s) / 3600 > *budget.gpu_hours) {
        return fmt::format("the budget of {:.2f} device hours is used, less the reserve for verification",
                           *budget.gpu_hours);
    }
    if (const TrialRecord* best = state.incumbent();
        best && budget.target_speedup && std::exp(best->log_speedup) >= *budget.target_speedup) {
        return fmt::format("the target of {:.2f}x is reached by trial {}", *budget.target_speedup, best->number);
    }
    return std::nullopt;
}

int failures_of_host(const CampaignState& state, const Candidate& candidate) {
    const std::string signature = candidate.signature();
    return static_cast<int>(std::count_if(state.trials.begin(), state.trials.end(), [&](const TrialRecord& trial) {
        return trial.role == "candidate" && trial.finished && !trial.cancelled &&
               trial.outcome == OutcomeKind::transient && trial.candidate.signature() == signature;
    }));
}

TrialRecord next_record(const CampaignState& state, const Proposal& proposal) {
    TrialRecord trial;
    int number = 1;
    for (const auto& known : state.trials) {
        if (known.role == "candidate") number = std::max(number, known.number + 1);
    }
    trial.number = number;
    trial.id = fmt::format("t-{:03}", number);
    trial.role = "candidate";
    trial.candidate = proposal.candidate;
    trial.op = proposal.op;
    trial.reason = proposal.reason;
    trial.expected_log_gain = proposal.expected_log_gain;
    trial.sigma = proposal.sigma;
    trial.p_fits = proposal.p_fits;
    return trial;
}

// Under `required: strict` an always-on item that this job gives no evidence for rejects every candidate: better said
// before the first trial is paid for than after the last.
Expected<void> check_evidence(const Contract& contract, const CampaignState& state, std::string_view key) {
    INFRARSI_ASSIGN(const ReferenceEvidence evidence, load_evidence(state, key));
    const Receipt& repeat = evidence.repeats.empty() ? evidence.reference : evidence.repeats.back();
    const Verdict verdict = judge(repeat, evidence, contract.invariants);
    std::vector<std::string> missing;
    for (const InvariantId id : verdict.rejecting(contract.invariants)) {
        missing.push_back(fmt::format("{} ({})", to_string(id), verdict[id].remedy));
    }
    if (missing.empty()) return {};
    return fail(ErrorKind::unsupported,
                "this job gives no evidence for {}, so every candidate would be rejected: add it, or name in "
                "invariants.required the items that must be checked",
                fmt::join(missing, "; "));
}

}  // namespace

const TrialRecord* Campaign::Impl::open_candidate() const {
    const auto open = std::find_if(state.trials.begin(), state.trials.end(), [](const TrialRecord& trial) {
        return trial.role == "candidate" && !trial.finished;
    });
    return open == state.trials.end() ? nullptr : &*open;
}

Expected<void> Campaign::Impl::settle() {
    std::stop_source stopped;
    stopped.request_stop();
    while (const TrialRecord* open = open_candidate()) INFRARSI_TRY(run_one(*open, stopped.get_token()));
    return {};
}

Expected<void> Campaign::end_search(const std::string& why) {
    if (impl_->state.search_done) return {};
    INFRARSI_TRY(impl_->settle());
    return impl_->record("search_finished", {{"why", why}});
}

Expected<void> Campaign::search() {
    Impl& impl = *impl_;
    INFRARSI_CHECK(impl.state.doctor.has_value(), "the reference is measured before the search");
    if (impl.state.search_done) return {};
    const DoctorResult doctor = *impl.state.doctor;
    impl.services.observer->stage("run", "searching", impl.state);

    SearchProblem problem;
    problem.contract = &impl.contract;
    problem.legal = &impl.legal;
    problem.gate = doctor.gate;
    problem.sigma_pair = doctor.noise.sigma_pair;
    problem.reference_gib = doctor.reference_gib;
    problem.capacity_gib = capacity_gib(impl.contract, impl.state);
    problem.phases = doctor.phases;
    problem.seed = impl.contract.seed;
    problem.screens = screen_budget(impl.contract.budget);
    GivenPatches patches(impl.state.patches);
    const auto controller = make_controller(problem, &patches);

    // A slow candidate is not worth more than a few references; compilation needs its share.
    impl.setup.timeout_s = impl.contract.launch.timeout_s.value_or(std::max(300.0, 4 * doctor.run_s + 240));
    impl.setup.silence_s = std::min(impl.setup.timeout_s, std::max(240.0, 2 * doctor.run_s));
    const std::stop_token stop = impl.services.interrupts->search();
    for (;;) {
        if (stop.stop_requested()) {
            INFRARSI_TRY(impl.record("interrupted", {{"stage", "search"}}));
            if (!impl.services.interrupts->all().stop_requested()) return end_search("stopped by the user");
            INFRARSI_TRY(impl.settle());
            const std::string run_dir = impl.state.run_dir.string();
            return fail(ErrorKind::cancelled,
                        "stopped in the search; `infrarsi run --resume {}` goes on from here, `infrarsi finish {}` "
                        "re-verifies the best so far",
                        run_dir, run_dir);
        }
        // A trial that a dead runner left behind comes first: it is paid for already.
        TrialRecord trial;
        if (const TrialRecord* open = impl.open_candidate()) {
            trial = *open;
        } else {
            if (const auto why = why_stop(impl.contract, impl.state, impl.elapsed_s())) return end_search(*why);
            const auto proposal = controller->next(impl.state.history());
            if (!proposal) return end_search(controller->why_done());
            if (impl.state.screens_used() == 0) {
                INFRARSI_TRY(check_evidence(impl.contract, impl.state, impl.services.key));
            }
            trial = next_record(impl.state, *proposal);
        }
        INFRARSI_ASSIGN(trial, impl.run_one(trial, stop));
        if (trial.outcome == OutcomeKind::transient && !trial.cancelled &&
            failures_of_host(impl.state, trial.candidate) <= kTransientRetries) {
            Proposal again{
                trial.candidate,         trial.op,    "again, after a fault of the host: " + trial.verdict_reason,
                trial.expected_log_gain, trial.sigma, trial.p_fits};
            INFRARSI_ASSIGN(trial, impl.run_one(next_record(impl.state, again), stop));
        }
    }
}

}  // namespace infrarsi
