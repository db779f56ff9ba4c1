#pragma once
// What the stages of a campaign share. Private to core/campaign.

#include "core/campaign/campaign.h"

namespace infrarsi {

struct Campaign::Impl {
    CampaignOptions options;
    CampaignServices services;
    Contract contract;
    LegalSet legal;
    std::optional<RunLock> lock;
    std::optional<Journal> journal;
    CampaignState state;
    TrialSetup setup;

    [[nodiscard]] Expected<void> record(const std::string& type, nlohmann::json body);
    // Runs a trial that has not finished yet, or gives the finished one. The record comes back complete.
    [[nodiscard]] Expected<TrialRecord> run_one(TrialRecord trial, std::stop_token stop);
    // As many clean runs of the unchanged job as the options ask for; unsupported, with the cause, when it has none.
    [[nodiscard]] Expected<std::vector<Receipt>> run_references();
    // A trial of the search that a dead runner left behind.
    [[nodiscard]] const TrialRecord* open_candidate() const;
    // Brings those to an end without running anything: one that has ended gets its receipt, one that still runs is
    // stopped.
    [[nodiscard]] Expected<void> settle();
    [[nodiscard]] double elapsed_s() const;
    // Fills what a receipt says into the record: outcome, verdict, score, memory, cost.
    [[nodiscard]] Expected<void> complete(TrialRecord& trial, const Receipt& receipt);
    double session_start_s = 0, elapsed_before_s = 0;
};

}  // namespace infrarsi
