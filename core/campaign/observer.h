#pragma once
// Whoever watches a campaign: the terminal now, editors later. Calls come from the runner's thread, in order.

#include <string>

#include "core/campaign/state.h"
#include "core/trial/run_trial.h"

namespace infrarsi {

class CampaignObserver {
public:
    virtual ~CampaignObserver() = default;
    virtual void stage(const std::string& name, const std::string& detail, const CampaignState& state) = 0;
    virtual void trial_started(const TrialRecord& trial, const CampaignState& state) = 0;
    virtual void trial_progress(const TrialRecord& trial, const TrialProgress& progress,
                                const CampaignState& state) = 0;
    virtual void trial_finished(const TrialRecord& trial, const CampaignState& state) = 0;
    virtual void note(const std::string& sentence) = 0;
};

}  // namespace infrarsi
