#pragma once
// The campaign: reference runs, search, promotion and result as a state machine over the journal (DESIGN §4, §6). Every
// method continues from what the journal says, so the same calls start a campaign, resume it after a crash and finish
// it.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/campaign/interrupts.h"
#include "core/campaign/journal.h"
#include "core/campaign/observer.h"
#include "core/campaign/run_lock.h"
#include "core/campaign/state.h"
#include "core/contract/constraint.h"
#include "core/trial/run_trial.h"
#include "core/verify/verdict.h"

namespace infrarsi {

// Flags that change the contract for one campaign. They are recorded in the journal.
struct Overrides {
    std::optional<int> screens;
    std::optional<double> wallclock_s, gpu_hours, target_speedup, target_mfu, tolerance;
    std::optional<std::uint64_t> seed;
};
[[nodiscard]] nlohmann::json to_json(const Overrides& overrides);
[[nodiscard]] Overrides overrides_from_json(const nlohmann::json& body);
void apply_overrides(Contract& contract, const Overrides& overrides);

// The world of a campaign, handed in by main. All must outlive the campaign.
struct CampaignServices {
    ExecTarget* target = nullptr;
    Clock* clock = nullptr;
    Interrupts* interrupts = nullptr;
    CampaignObserver* observer = nullptr;
    std::string key;  // signs journal and receipts
    std::filesystem::path key_dir;
    std::filesystem::path adapters_dir;
    std::map<std::string, std::string> parent_env;
};

struct CampaignOptions {
    std::filesystem::path runs_dir;  // empty: <root>/.infrarsi/runs
    Overrides overrides;
    std::vector<Patch> patches;  // tried like any other candidate
    int reference_runs = 3;      // at least 1
    bool keep_trees = false;
};

class Campaign {
public:
    // Takes the lock, a snapshot of the working tree, and writes the first event.
    // conflict: another runner; io/resource: the run folder cannot be written; frozen: frozen files differ from
    // infrarsi.lock.
    [[nodiscard]] static Expected<Campaign> start(const Contract& contract, const CampaignOptions& options,
                                                  const CampaignServices& services);
    // Continues the run in `run_dir`. `reopen` lets a finished search go on (a new budget).
    enum class Reopen { no, search };
    [[nodiscard]] static Expected<Campaign> resume(const std::filesystem::path& run_dir, const CampaignOptions& options,
                                                   Reopen reopen, const CampaignServices& services);
    Campaign(Campaign&&) noexcept;
    Campaign& operator=(Campaign&&) noexcept;
    ~Campaign();

    // Runs the reference (again), and says what its noise is. A reference that crashes, prints no updates or is NaN is
    // an error (`unsupported`, `invalid_input`) that says what to do.
    [[nodiscard]] Expected<void> measure_reference();
    // Searches until the budget, a target or the ideas are used up, or somebody interrupts.
    [[nodiscard]] Expected<void> search();
    // No more search, whatever is left of the budget.
    [[nodiscard]] Expected<void> end_search(const std::string& why);
    // Re-tests the best candidates back to back and decides. Writes result.json.
    [[nodiscard]] Expected<void> promote();

    [[nodiscard]] const CampaignState& state() const;
    [[nodiscard]] const Contract& contract() const;

    struct Impl;  // of the stages in this folder

private:
    explicit Campaign(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// The signed receipt of a trial in a run. corrupt when it does not verify, or is not the one that the journal knows.
[[nodiscard]] Expected<Receipt> load_receipt(const std::filesystem::path& run_dir, const TrialRecord& trial,
                                             std::string_view key);

// The reference receipts of a run and their noise. not_found before a reference was measured.
[[nodiscard]] Expected<ReferenceEvidence> load_evidence(const CampaignState& state, std::string_view key);

// The newest run under `runs_dir` (by its first event's name); not_found says where it looked.
[[nodiscard]] Expected<std::filesystem::path> newest_run(const std::filesystem::path& runs_dir);

// Reads a run's journal and folds it. corrupt when it has no event, or does not verify.
[[nodiscard]] Expected<CampaignState> load_state(const std::filesystem::path& run_dir, std::string_view key);

// not_found: the run's snapshot is gone; corrupt: it is no longer what the campaign measured.
[[nodiscard]] Expected<void> check_snapshot(const CampaignState& state, const Contract& contract);

// The contract as that campaign used it: its recorded text with its overrides.
[[nodiscard]] Expected<Contract> campaign_contract(const CampaignState& state);

}  // namespace infrarsi
