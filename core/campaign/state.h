#pragma once
// The state of a campaign: a fold over its journal (DESIGN §4). Nothing here is stored by itself; state.json is a cache
// for people and tools. Costs count every trial, failed and excluded ones too (paper §3.2).

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/measure/noise.h"
#include "core/search/history.h"
#include "core/trial/candidate.h"
#include "core/verify/verdict.h"

namespace infrarsi {

struct TrialRecord {
    std::string id;    // "ref-1", "t-007", "promo-1-2-cand-1"
    std::string role;  // as in Receipt
    int number = 0;    // screens only: 1, 2, …
    Candidate candidate;
    std::string op, reason;  // of the proposal
    double expected_log_gain = 0, sigma = 0, p_fits = 1;
    bool finished = false;
    OutcomeKind outcome = OutcomeKind::failed;
    bool cancelled = false;
    double log_speedup = 0;           // of window medians against the reference; valid only
    double mean_s = 0, median_s = 0;  // window step time; 0: none
    std::optional<double> peak_gib, need_gib;
    double cost_s = 0;           // wall seconds of the job
    double device_s = 0;         // seconds × devices (ranks)
    std::string verdict_reason;  // empty when valid
    std::vector<std::string> failed_invariants;
    std::vector<std::string> notes;  // ineffective settings, what was realised
    std::string receipt_digest;      // SHA-256 of receipt.json
};

struct DoctorResult {
    NoiseFloor noise;
    double gate = 0.02;
    double reference_s = 0;  // mean window step time of the references
    double reference_median_s = 0;
    double reference_gib = 0;
    std::optional<double> loss_mean;
    PhaseShares phases;
    std::string loss_power;             // sentence
    std::vector<std::string> coverage;  // one line an invariant: "same_data: checked" or what to add
    double run_s = 0;                   // how long a reference takes, start to end
};

struct PromotionRecord {
    int index = 0;      // 1, 2, …
    std::string trial;  // the search trial that is re-tested
    Candidate candidate;
    bool decided = false;
    Decision decision = Decision::undecided;
    GainEstimate gain;
    std::string reason;
    std::vector<std::string> failed_invariants;
};

struct CampaignResult {
    bool promoted = false;
    Candidate candidate;       // the reference when nothing was promoted
    double speedup = 1;        // delivered: of the fresh re-run only
    double low = 1, high = 1;  // one-sided 95 % bounds
    std::string reason;
    bool interrupted = false;
};

struct CampaignState {
    std::string run_id;
    std::filesystem::path run_dir;
    std::filesystem::path root;  // of the project
    std::filesystem::path contract_file;
    std::string contract_text;         // as it was when the campaign started
    nlohmann::json overrides() const;  // flags that changed the contract, by name
    std::string overrides_text = "{}";
    std::string contract_digest, tree_digest, key;  // key: what doctor's result is addressed by
    std::string snapshot_digest;  // of what was copied; empty in runs of versions that did not record it
    std::string nonce;
    std::vector<int> state_at;
    int audit_at = 0;
    std::vector<Patch> patches;  // handed in by the user
    std::map<std::string, std::string> environment;
    std::vector<TrialRecord> trials;   // in order of start
    std::vector<TrialRecord> stopped;  // stopped attempts at trials that were started again: they cost time too
    std::optional<DoctorResult> doctor;
    bool search_done = false;
    std::string why_search_done;
    std::vector<PromotionRecord> promotions;
    std::optional<CampaignResult> result;
    double elapsed_s = 0;  // wall time over all sessions of the runner
    int sessions = 0;
    bool interrupted = false;

    [[nodiscard]] const TrialRecord* trial(const std::string& id) const;
    [[nodiscard]] int screens_used() const;              // finished, and neither cancelled nor the host's fault
    [[nodiscard]] std::vector<Outcome> history() const;  // of the search, for the controller
    [[nodiscard]] const TrialRecord* incumbent() const;  // fastest valid search trial that clears the gate
    struct Cost {
        std::string stage;  // "reference", "search", "promotion"
        int runs = 0, failed = 0;
        double wall_s = 0, device_s = 0;
    };
    [[nodiscard]] std::vector<Cost> ledger() const;
};

// internal when an event is of a type or shape that this version does not know.
[[nodiscard]] Expected<CampaignState> fold(const std::vector<nlohmann::json>& events,
                                           const std::filesystem::path& run_dir);

// state.json and `--json`.
[[nodiscard]] nlohmann::json to_json(const CampaignState& state);

[[nodiscard]] nlohmann::json to_json(const TrialRecord& trial);
[[nodiscard]] nlohmann::json to_json(const DoctorResult& doctor);
[[nodiscard]] nlohmann::json to_json(const PromotionRecord& promotion);
[[nodiscard]] nlohmann::json to_json(const CampaignResult& result);
[[nodiscard]] nlohmann::json to_json(const GainEstimate& gain);
[[nodiscard]] std::string_view to_string(OutcomeKind kind);
[[nodiscard]] std::string_view to_string(Decision decision);

}  // namespace infrarsi
