#pragma once
// REPORT.md: what was measured, what is recommended, and what everything cost (DESIGN §6, paper §3.2). A pure view of a
// folded campaign.

#include <string>

#include "core/campaign/state.h"
#include "core/contract/contract.h"

namespace infrarsi {

// Markdown. Every trial is listed with its cost, failed and excluded ones too; the only speed-up called delivered is
// that of the fresh re-run.
[[nodiscard]] std::string render_report(const CampaignState& state, const Contract& contract);

}  // namespace infrarsi
