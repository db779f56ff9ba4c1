#include "core/campaign/state.h"

#include <nlohmann/json.hpp>

#include "core/campaign/state_json.h"

namespace infrarsi {

using nlohmann::json;

namespace {

TrialRecord* find_trial(CampaignState& state, const std::string& id) {
    for (auto& trial : state.trials) {
        if (trial.id == id) return &trial;
    }
    return nullptr;
}

Expected<void> apply_started(CampaignState& state, const json& event) {
    state.run_id = event.at("run_id").get<std::string>();
    state.root = event.at("root").get<std::string>();
    state.contract_file = event.at("contract_file").get<std::string>();
    state.contract_text = event.at("contract_text").get<std::string>();
    state.overrides_text = event.value("overrides", json::object()).dump();
    state.contract_digest = event.value("contract_digest", "");
    state.tree_digest = event.value("tree_digest", "");
    state.key = event.value("key", "");
    state.snapshot_digest = event.value("snapshot_digest", "");
    state.nonce = event.at("nonce").get<std::string>();
    state.state_at = event.value("state_at", std::vector<int>{});
    state.audit_at = event.value("audit_at", 0);
    state.environment = event.value("environment", std::map<std::string, std::string>{});
    for (const auto& patch : event.value("patches", json::array())) {
        state.patches.push_back(
            {patch.value("title", ""), patch.at("diff").get<std::string>(), patch.value("origin", "user")});
    }
    return {};
}

Expected<void> apply_trial(CampaignState& state, const json& event) {
    INFRARSI_ASSIGN(TrialRecord record, trial_from_json(event.at("trial")));
    if (TrialRecord* known = find_trial(state, record.id)) {
        if (known->finished && !record.finished) state.stopped.push_back(std::move(*known));
        *known = std::move(record);
    } else {
        state.trials.push_back(std::move(record));
    }
    return {};
}

Expected<void> apply_promotion(CampaignState& state, const json& event) {
    INFRARSI_ASSIGN(PromotionRecord record, promotion_from_json(event.at("promotion")));
    for (auto& known : state.promotions) {
        if (known.index == record.index) {
            known = std::move(record);
            return {};
        }
    }
    state.promotions.push_back(std::move(record));
    return {};
}

Expected<void> apply_event(CampaignState& state, const json& event) {
    const auto type = event.at("type").get<std::string>();
    if (type == "campaign_started") return apply_started(state, event);
    if (type == "session_started") {
        ++state.sessions;
        if (event.contains("overrides")) state.overrides_text = event["overrides"].dump();
        if (event.value("reopened", false)) {  // a larger budget, or a finish after an early end
            state.search_done = false;
            state.result.reset();
        }
        state.interrupted = false;
        return {};
    }
    if (type == "trial_started" || type == "trial_finished") return apply_trial(state, event);
    if (type == "doctor_finished") {
        state.doctor = doctor_from_json(event.at("doctor"));
        return {};
    }
    if (type == "search_finished") {
        state.search_done = true;
        state.why_search_done = event.value("why", "");
        return {};
    }
    if (type == "promotion_started" || type == "promotion_decided") return apply_promotion(state, event);
    if (type == "interrupted") {
        state.interrupted = true;
        return {};
    }
    if (type == "campaign_finished") {
        INFRARSI_ASSIGN(state.result, result_from_json(event.at("result")));
        return {};
    }
    if (type == "applied" || type == "note") return {};
    return fail(ErrorKind::unsupported, "the journal has an event of type {}, which this version does not know", type);
}

}  // namespace

Expected<CampaignState> fold(const std::vector<json>& events, const std::filesystem::path& run_dir) {
    CampaignState state;
    state.run_dir = run_dir;
    double session_start = 0;
    for (const auto& event : events) {
        try {
            const double now = event.at("t_wall").get<double>();
            if (event.at("type") == "session_started") session_start = now;
            INFRARSI_TRY(apply_event(state, event));
            // Each event proves that the runner lived until then; a killed session ends at its last event.
            if (session_start > 0) {
                state.elapsed_s += std::max(0.0, now - session_start);
                session_start = now;
            }
        } catch (const json::exception& error) {
            return fail(ErrorKind::corrupt, "event {} of {} does not have the expected form: {}",
                        event.value("seq", std::size_t{0}), run_dir.string(), error.what());
        }
    }
    return state;
}

json CampaignState::overrides() const {
    return json::parse(overrides_text, nullptr, false);
}

const TrialRecord* CampaignState::trial(const std::string& id) const {
    for (const auto& record : trials) {
        if (record.id == id) return &record;
    }
    return nullptr;
}

int CampaignState::screens_used() const {
    return static_cast<int>(std::count_if(trials.begin(), trials.end(), [](const TrialRecord& trial) {
        return trial.role == "candidate" && trial.finished && !trial.cancelled &&
               trial.outcome != OutcomeKind::transient;
    }));
}

std::vector<Outcome> CampaignState::history() const {
    std::vector<Outcome> outcomes;
    for (const auto& trial : trials) {
        if (trial.role != "candidate" || !trial.finished || trial.cancelled) continue;
        Outcome outcome;
        outcome.trial = trial.number;
        outcome.candidate = trial.candidate;
        outcome.kind = trial.outcome;
        outcome.log_speedup = trial.log_speedup;
        outcome.sigma = doctor ? std::max(doctor->noise.sigma_pair, 0.002) : 0.02;
        outcome.peak_gib = trial.peak_gib;
        outcome.need_gib = trial.need_gib;
        outcome.cost_s = trial.cost_s;
        outcome.reason = trial.verdict_reason;
        outcomes.push_back(std::move(outcome));
    }
    return outcomes;
}

const TrialRecord* CampaignState::incumbent() const {
    const TrialRecord* best = nullptr;
    for (const auto& trial : trials) {
        if (trial.role != "candidate" || !trial.finished || trial.outcome != OutcomeKind::valid || trial.cancelled)
            continue;
        if (trial.log_speedup <= (doctor ? doctor->gate : 0.02)) continue;
        if (!best || trial.log_speedup > best->log_speedup) best = &trial;
    }
    return best;
}

std::vector<CampaignState::Cost> CampaignState::ledger() const {
    std::vector<Cost> costs{{"reference"}, {"search"}, {"promotion"}};
    for (const auto* list : {&trials, &stopped}) {
        for (const auto& trial : *list) {
            if (!trial.finished) continue;
            Cost& cost = costs[trial.role == "reference" ? 0 : trial.role == "candidate" ? 1 : 2];
            ++cost.runs;
            if (trial.outcome != OutcomeKind::valid || trial.cancelled) ++cost.failed;
            cost.wall_s += trial.cost_s;
            cost.device_s += trial.device_s;
        }
    }
    return costs;
}

json to_json(const CampaignState& state) {
    json trials = json::array();
    for (const auto& trial : state.trials) trials.push_back(to_json(trial));
    json promotions = json::array();
    for (const auto& promotion : state.promotions) promotions.push_back(to_json(promotion));
    json ledger = json::array();
    for (const auto& cost : state.ledger()) {
        ledger.push_back({{"stage", cost.stage},
                          {"runs", cost.runs},
                          {"failed", cost.failed},
                          {"wall_s", cost.wall_s},
                          {"device_hours", cost.device_s / 3600}});
    }
    return {{"run_id", state.run_id},
            {"run_dir", state.run_dir.string()},
            {"root", state.root.string()},
            {"contract_digest", state.contract_digest},
            {"tree_digest", state.tree_digest},
            {"trials", std::move(trials)},
            {"doctor", state.doctor ? to_json(*state.doctor) : json(nullptr)},
            {"search_done", state.search_done},
            {"why_search_done", state.why_search_done},
            {"promotions", std::move(promotions)},
            {"result", state.result ? to_json(*state.result) : json(nullptr)},
            {"ledger", std::move(ledger)},
            {"elapsed_s", state.elapsed_s},
            {"sessions", state.sessions}};
}

}  // namespace infrarsi
