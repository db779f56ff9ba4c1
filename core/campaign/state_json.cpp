// The parts of a campaign's state as JSON, both ways: the bodies of journal events.

#include "core/campaign/state_json.h"

#include <nlohmann/json.hpp>

namespace infrarsi {

using nlohmann::json;

namespace {

json optional_json(const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
}

std::optional<double> optional_number(const json& body, const char* name) {
    const auto it = body.find(name);
    if (it == body.end() || it->is_null()) return std::nullopt;
    return it->get<double>();
}

constexpr std::pair<OutcomeKind, std::string_view> kOutcomes[] = {
    {OutcomeKind::valid, "valid"},   {OutcomeKind::rejected, "rejected"},       {OutcomeKind::oom, "oom"},
    {OutcomeKind::failed, "failed"}, {OutcomeKind::ineffective, "ineffective"}, {OutcomeKind::transient, "transient"},
};

constexpr std::pair<Decision, std::string_view> kDecisions[] = {
    {Decision::promote, "promote"},
    {Decision::reject, "reject"},
    {Decision::undecided, "undecided"},
};

template <class E, std::size_t N>
E from_name(const std::pair<E, std::string_view> (&names)[N], std::string_view name, E otherwise) {
    for (const auto& [value, text] : names) {
        if (text == name) return value;
    }
    return otherwise;
}

}  // namespace

std::string_view to_string(OutcomeKind kind) {
    for (const auto& [value, text] : kOutcomes) {
        if (value == kind) return text;
    }
    return "failed";
}

std::string_view to_string(Decision decision) {
    for (const auto& [value, text] : kDecisions) {
        if (value == decision) return text;
    }
    return "undecided";
}

json to_json(const TrialRecord& trial) {
    return {{"id", trial.id},
            {"role", trial.role},
            {"number", trial.number},
            {"candidate", to_json(trial.candidate)},
            {"op", trial.op},
            {"why", trial.reason},
            {"expected_log_gain", trial.expected_log_gain},
            {"sigma", trial.sigma},
            {"p_fits", trial.p_fits},
            {"finished", trial.finished},
            {"outcome", to_string(trial.outcome)},
            {"cancelled", trial.cancelled},
            {"log_speedup", trial.log_speedup},
            {"mean_s", trial.mean_s},
            {"median_s", trial.median_s},
            {"peak_gib", optional_json(trial.peak_gib)},
            {"need_gib", optional_json(trial.need_gib)},
            {"cost_s", trial.cost_s},
            {"device_s", trial.device_s},
            {"verdict_reason", trial.verdict_reason},
            {"failed_invariants", trial.failed_invariants},
            {"notes", trial.notes},
            {"receipt_digest", trial.receipt_digest}};
}

Expected<TrialRecord> trial_from_json(const json& body) {
    TrialRecord trial;
    trial.id = body.at("id").get<std::string>();
    trial.role = body.at("role").get<std::string>();
    trial.number = body.value("number", 0);
    INFRARSI_ASSIGN(trial.candidate, candidate_from_json(body.at("candidate")));
    trial.op = body.value("op", "");
    trial.reason = body.value("why", "");
    trial.expected_log_gain = body.value("expected_log_gain", 0.0);
    trial.sigma = body.value("sigma", 0.0);
    trial.p_fits = body.value("p_fits", 1.0);
    trial.finished = body.value("finished", false);
    trial.outcome = from_name(kOutcomes, body.value("outcome", "failed"), OutcomeKind::failed);
    trial.cancelled = body.value("cancelled", false);
    trial.log_speedup = body.value("log_speedup", 0.0);
    trial.mean_s = body.value("mean_s", 0.0);
    trial.median_s = body.value("median_s", 0.0);
    trial.peak_gib = optional_number(body, "peak_gib");
    trial.need_gib = optional_number(body, "need_gib");
    trial.cost_s = body.value("cost_s", 0.0);
    trial.device_s = body.value("device_s", 0.0);
    trial.verdict_reason = body.value("verdict_reason", "");
    trial.failed_invariants = body.value("failed_invariants", std::vector<std::string>{});
    trial.notes = body.value("notes", std::vector<std::string>{});
    trial.receipt_digest = body.value("receipt_digest", "");
    return trial;
}

json to_json(const NoiseFloor& noise) {
    return {{"sigma_pair", noise.sigma_pair}, {"degrees", noise.degrees},       {"from_pairs", noise.from_pairs},
            {"from_split", noise.from_split}, {"from_white", noise.from_white}, {"winner", noise.winner},
            {"drifting", noise.drifting},     {"sigma_loss", noise.sigma_loss}, {"runs", noise.runs}};
}

NoiseFloor noise_from_json(const json& body) {
    NoiseFloor noise;
    noise.sigma_pair = body.value("sigma_pair", 0.0);
    noise.degrees = body.value("degrees", 1.0);
    noise.from_pairs = body.value("from_pairs", 0.0);
    noise.from_split = body.value("from_split", 0.0);
    noise.from_white = body.value("from_white", 0.0);
    noise.winner = body.value("winner", "");
    noise.drifting = body.value("drifting", false);
    noise.sigma_loss = body.value("sigma_loss", 0.0);
    noise.runs = body.value("runs", 0);
    return noise;
}

json to_json(const DoctorResult& doctor) {
    return {{"noise", to_json(doctor.noise)},
            {"gate", doctor.gate},
            {"reference_s", doctor.reference_s},
            {"reference_median_s", doctor.reference_median_s},
            {"reference_gib", doctor.reference_gib},
            {"loss_mean", optional_json(doctor.loss_mean)},
            {"phases",
             {{"forward", doctor.phases.forward},
              {"backward", doctor.phases.backward},
              {"optimizer", doctor.phases.optimizer},
              {"data", doctor.phases.data},
              {"other", doctor.phases.other},
              {"known", doctor.phases.known}}},
            {"loss_power", doctor.loss_power},
            {"coverage", doctor.coverage},
            {"run_s", doctor.run_s}};
}

DoctorResult doctor_from_json(const json& body) {
    DoctorResult doctor;
    doctor.noise = noise_from_json(body.value("noise", json::object()));
    doctor.gate = body.value("gate", 0.02);
    doctor.reference_s = body.value("reference_s", 0.0);
    doctor.reference_median_s = body.value("reference_median_s", 0.0);
    doctor.reference_gib = body.value("reference_gib", 0.0);
    doctor.loss_mean = optional_number(body, "loss_mean");
    const json phases = body.value("phases", json::object());
    doctor.phases = {phases.value("forward", 0.0), phases.value("backward", 0.0), phases.value("optimizer", 0.0),
                     phases.value("data", 0.0),    phases.value("other", 0.0),    phases.value("known", false)};
    doctor.loss_power = body.value("loss_power", "");
    doctor.coverage = body.value("coverage", std::vector<std::string>{});
    doctor.run_s = body.value("run_s", 0.0);
    return doctor;
}

json to_json(const GainEstimate& gain) {
    return {{"pairs", gain.pairs},
            {"log_gain", gain.log_gain},
            {"low", gain.low},
            {"high", gain.high},
            {"speedup", gain.speedup},
            {"margin", gain.margin},
            {"decision", to_string(gain.decision)},
            {"reason", gain.reason}};
}

GainEstimate gain_from_json(const json& body) {
    GainEstimate gain;
    gain.pairs = body.value("pairs", 0);
    gain.log_gain = body.value("log_gain", 0.0);
    gain.low = body.value("low", 0.0);
    gain.high = body.value("high", 0.0);
    gain.speedup = body.value("speedup", 1.0);
    gain.margin = body.value("margin", 0.0);
    gain.decision = from_name(kDecisions, body.value("decision", "undecided"), Decision::undecided);
    gain.reason = body.value("reason", "");
    return gain;
}

json to_json(const PromotionRecord& promotion) {
    return {{"index", promotion.index},
            {"trial", promotion.trial},
            {"candidate", to_json(promotion.candidate)},
            {"decided", promotion.decided},
            {"decision", to_string(promotion.decision)},
            {"gain", to_json(promotion.gain)},
            {"why", promotion.reason},
            {"failed_invariants", promotion.failed_invariants}};
}

Expected<PromotionRecord> promotion_from_json(const json& body) {
    PromotionRecord promotion;
    promotion.index = body.at("index").get<int>();
    promotion.trial = body.at("trial").get<std::string>();
    INFRARSI_ASSIGN(promotion.candidate, candidate_from_json(body.at("candidate")));
    promotion.decided = body.value("decided", false);
    promotion.decision = from_name(kDecisions, body.value("decision", "undecided"), Decision::undecided);
    promotion.gain = gain_from_json(body.value("gain", json::object()));
    promotion.reason = body.value("why", "");
    promotion.failed_invariants = body.value("failed_invariants", std::vector<std::string>{});
    return promotion;
}

json to_json(const CampaignResult& result) {
    return {{"promoted", result.promoted},
            {"candidate", to_json(result.candidate)},
            {"speedup", result.speedup},
            {"low", result.low},
            {"high", result.high},
            {"why", result.reason},
            {"interrupted", result.interrupted}};
}

Expected<CampaignResult> result_from_json(const json& body) {
    CampaignResult result;
    result.promoted = body.at("promoted").get<bool>();
    INFRARSI_ASSIGN(result.candidate, candidate_from_json(body.at("candidate")));
    result.speedup = body.value("speedup", 1.0);
    result.low = body.value("low", 1.0);
    result.high = body.value("high", 1.0);
    result.reason = body.value("why", "");
    result.interrupted = body.value("interrupted", false);
    return result;
}

}  // namespace infrarsi
