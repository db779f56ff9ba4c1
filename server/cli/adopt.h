#pragma once
// Showing, writing or committing a planned change, and saying what was done. Shared by apply, finish and optimize.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/campaign/apply.h"

namespace infrarsi {

enum class Adoption { show, write, branch };

// Returns the plan as JSON with what was done: {…, "written": bool, "branch": name or null, "commit": id or null}.
[[nodiscard]] Expected<nlohmann::json> adopt(const ApplyPlan& plan, const CampaignState& state, Adoption how,
                                             const std::string& branch);

// For people: the diff, then what was or would be written.
[[nodiscard]] std::string describe_adoption(const ApplyPlan& plan, const CampaignState& state,
                                            const nlohmann::json& done);

}  // namespace infrarsi
