#pragma once
// What the commands that run a campaign share.

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "core/campaign/campaign.h"
#include "server/cli/program.h"
#include "server/cli/progress.h"

namespace infrarsi {

struct CampaignSession {
    std::unique_ptr<CampaignObserver> observer;
    CampaignServices services;
    CampaignOptions campaign;
};

[[nodiscard]] Expected<CampaignSession> open_session(const Program& program, const Options& options,
                                                     const Contract& contract);

// invalid_input when the file is no unified diff.
[[nodiscard]] Expected<Patch> read_patch(const std::filesystem::path& file);

// A new campaign, or doctor's of the same contract, sources and machine.
[[nodiscard]] Expected<Campaign> open_campaign(const Program& program, const Contract& contract,
                                               CampaignSession& session);

// Reference, search (or its end), promotion, REPORT.md.
[[nodiscard]] Expected<void> run_stages(Campaign& campaign, bool search);

// "Delivered: …" for people. The campaign has a result.
[[nodiscard]] std::string summary_of(const CampaignState& state);

// Writes what was promoted, and prints the summary (or `extra` with the campaign added, as JSON).
[[nodiscard]] Expected<int> adopt_result(const Campaign& campaign, const Options& options, nlohmann::json extra);

}  // namespace infrarsi
