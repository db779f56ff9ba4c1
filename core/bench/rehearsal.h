#pragma once
// One campaign on a simulated job, for comparing strategies of search: the doctor's runs, trials within a budget with
// the real verifier's verdict on each, and the promotion. It is all that a strategy sees (SIMULATOR.md §10.3): knobs,
// values, legality, mechanisms, patch ids, capacity, beliefs, and what runs leave behind. What is true of a candidate
// stays behind the private part. Source: SIMULATOR.md §6–§8, §10.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/simulate/simulator.h"
#include "core/trial/simulated_receipt.h"
#include "core/verify/verdict.h"

namespace infrarsi::bench {

inline constexpr double kDefaultBudgetUnits = 24;
inline constexpr int kMostFinalists = 3;

struct ValueView {
    Value value;
    bool is_legal = true;
};

struct KnobView {
    std::string name;
    std::optional<std::string> mechanism;
    bool is_ordered = false;
    int reference = 0;
    std::vector<ValueView> values;  // in the workload's order: a sim::Candidate names them by index
};

struct PatchView {
    std::string id;
    std::optional<std::string> mechanism;
};

// What is known before any trial.
struct JobView {
    std::string name;
    std::vector<KnobView> knobs;
    std::vector<PatchView> patches;
    std::vector<sim::Atom> atoms;  // with the campaign's beliefs
    Contract contract;             // as a real campaign would have it; legal values only
    double capacity_gib = 0;
    int updates = 0, warmup = 0;  // of a full trial
    int max_attempts = 0;         // at one patch
    double budget_units = 0;

    [[nodiscard]] bool is_legal(const sim::Atom& atom) const;
};

// The doctor's runs of the unchanged job, outside the budget.
struct DoctorView {
    std::vector<Receipt> runs;
    NoiseFloor noise;
    double log_step_s = 0;               // mean of ln of the window means
    double peak_gib = 0;                 // largest of the runs
    std::vector<sim::Profile> profiles;  // one a run
};

struct TrialPlan {
    sim::Candidate candidate;
    sim::Support support = sim::Support::plain;  // of patches that do not work yet
    std::optional<int> updates;                  // 1 to the job's: a rung of the ladder; nothing: a full trial
};

struct Trial {
    TrialPlan plan;
    std::vector<int> failed_patches;  // attempts that did not work; then nothing was run, and there is no verdict
    sim::Answer answer;
    Receipt receipt;
    std::optional<Verdict> verdict;
    std::optional<double> log_gain;  // ln(reference / window mean), where it completed and has a window

    [[nodiscard]] bool completed() const { return answer.status == sim::Outcome::completed; }
    [[nodiscard]] bool is_valid() const { return completed() && verdict && verdict->valid; }
    [[nodiscard]] bool ran_out_of_memory() const { return answer.status == sim::Outcome::oom; }
};

// A finalist's fresh re-runs.
struct Retest {
    sim::Candidate candidate;
    GainEstimate gain;
    Decision decision = Decision::undecided;
    std::string reason;
    std::vector<Verdict> verdicts;  // of its runs
};

struct Promotion {
    std::optional<sim::Candidate> winner;
    std::vector<Retest> retests;
    double cost_units = 0;
};

// What the strategy held to be best from this cost on.
struct Incumbent {
    double spent_units = 0;
    int trials = 0;
    sim::Candidate candidate;
};

// Only the agents of the baselines may know what a well-read agent would guess: their strength is set by the workload.
class AgentKey {
    friend class Agent;
    AgentKey() = default;
};

class Rehearsal {
public:
    // Runs the doctor. `workload` and `clock` must outlive it. Not thread-safe; each campaign has its own. A trial
    // costs about 0.1 ms, optimised, most of it the verdict.
    Rehearsal(const sim::Workload& workload, std::uint64_t seed, double budget_units, const Clock& clock);

    [[nodiscard]] const JobView& job() const { return job_; }
    [[nodiscard]] const DoctorView& doctor() const { return doctor_; }
    [[nodiscard]] sim::Candidate reference() const;

    // A trial may start while less than the budget is spent, and is then paid in full.
    [[nodiscard]] bool may_start() const { return spent_units_ < job_.budget_units; }
    [[nodiscard]] double spent_units() const { return spent_units_; }
    [[nodiscard]] int trials() const { return trials_; }

    // Attempts what does not work yet, all of it, then runs the candidate if all attempts worked. resource: the budget
    // is spent. conflict: a patch has no attempt left. invalid_input: no candidate of the job, updates out of range.
    [[nodiscard]] Expected<Trial> run(const TrialPlan& plan);
    // A candidate that a static reviewer stopped: charged, never run.
    void charge_review();

    [[nodiscard]] bool works(int patch) const { return (working_ >> patch & 1U) != 0; }
    [[nodiscard]] int attempts(int patch) const { return attempts_[static_cast<std::size_t>(patch)]; }
    [[nodiscard]] bool may_attempt(int patch) const { return works(patch) || attempts(patch) < job_.max_attempts; }

    // For the score: from what cost on the strategy held which candidate to be best.
    void set_incumbent(const sim::Candidate& candidate);
    [[nodiscard]] const std::vector<Incumbent>& incumbents() const { return incumbents_; }

    // Fresh full runs of the first three finalists, best first, each back to back with the reference (ABBA, at most
    // three blocks), outside the budget. The first that the verifier and the gain's interval let pass wins.
    [[nodiscard]] Promotion promote(const std::vector<sim::Candidate>& finalists);

    // The strategy's own randomness.
    [[nodiscard]] sim::RandomStream luck(std::string_view strategy) const;

    // Of each atom, in order: true log gain + 0.03 z. `familiarity` is how much of it such an agent knows here.
    [[nodiscard]] std::vector<double> informed_guesses(AgentKey key) const;
    [[nodiscard]] double familiarity(AgentKey key) const;

    // What it took to answer, doctor and promotion included: what is left of a campaign's time is the strategy's own.
    [[nodiscard]] double own_seconds() const { return own_seconds_; }

private:
    // Adds the time of its scope, which must not nest.
    class Stopwatch {
    public:
        explicit Stopwatch(Rehearsal& rehearsal) : rehearsal_(rehearsal), start_(rehearsal.clock_.monotonic()) {}
        ~Stopwatch() {
            const std::chrono::duration<double> passed = rehearsal_.clock_.monotonic() - start_;
            rehearsal_.own_seconds_ += passed.count();
        }
        Stopwatch(const Stopwatch&) = delete;
        Stopwatch& operator=(const Stopwatch&) = delete;

    private:
        Rehearsal& rehearsal_;
        std::chrono::nanoseconds start_;
    };

    [[nodiscard]] Expected<void> check(const TrialPlan& plan) const;
    void attempt_patches(Trial& trial, sim::Request& request);
    void judge_trial(Trial& trial);
    void run_doctor();
    // Full run of a promotion; its cost goes to `promotion`.
    [[nodiscard]] Trial fresh_run(const sim::Candidate& candidate, Promotion& promotion);
    [[nodiscard]] Retest retest(const sim::Candidate& candidate, Promotion& promotion);
    [[nodiscard]] const ReferenceEvidence& evidence(int updates);

    const sim::Workload& workload_;
    std::uint64_t seed_ = 0;
    const Clock& clock_;
    sim::Simulator simulator_;
    JobView job_;
    DoctorView doctor_;
    std::map<int, ReferenceEvidence> evidence_;  // by the number of updates
    double spent_units_ = 0;
    int trials_ = 0;
    std::uint64_t working_ = 0;  // bit i: patch i
    std::vector<int> attempts_;
    std::vector<Incumbent> incumbents_;
    double own_seconds_ = 0;
};

}  // namespace infrarsi::bench
