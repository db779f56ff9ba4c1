#pragma once
// The parts of a campaign's state read back from journal events. They may throw nlohmann::json's exceptions; fold()
// turns these into errors that name the event.

#include <nlohmann/json_fwd.hpp>

#include "core/campaign/state.h"

namespace infrarsi {

[[nodiscard]] nlohmann::json to_json(const NoiseFloor& noise);
[[nodiscard]] NoiseFloor noise_from_json(const nlohmann::json& body);
[[nodiscard]] Expected<TrialRecord> trial_from_json(const nlohmann::json& body);
[[nodiscard]] DoctorResult doctor_from_json(const nlohmann::json& body);
[[nodiscard]] GainEstimate gain_from_json(const nlohmann::json& body);
[[nodiscard]] Expected<PromotionRecord> promotion_from_json(const nlohmann::json& body);
[[nodiscard]] Expected<CampaignResult> result_from_json(const nlohmann::json& body);

}  // namespace infrarsi
