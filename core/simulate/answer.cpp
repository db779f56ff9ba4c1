#include "core/simulate/answer.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/text/nearest.h"

namespace infrarsi::sim {

using nlohmann::json;

namespace {

Expected<std::int64_t> read_whole(const json& value, const std::string& key, std::int64_t low, std::int64_t high) {
    const bool is_whole = value.is_number_integer() &&
                          !(value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
    if (!is_whole || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
        return fail(ErrorKind::invalid_input, "{} must be a whole number from {} to {}", key, low, high);
    }
    return value.get<std::int64_t>();
}

Expected<void> check_keys(const json& object, const std::vector<std::string>& known, std::string_view what) {
    for (const auto& [key, value] : object.items()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        return fail(ErrorKind::invalid_input, "unknown key {} in {}{}", key, what, did_you_mean(key, known));
    }
    return {};
}

// A patch that is not a plain id; `ids` gets its name.
Expected<void> read_patch_object(const Workload& workload, const json& item, std::vector<std::string>& ids,
                                 std::vector<PatchAttempt>& attempts) {
    if (!item.is_object() || !item.contains("id") || !item["id"].is_string()) {
        return fail(ErrorKind::invalid_input, "a patch must be an id or an object with an id");
    }
    INFRARSI_TRY(check_keys(item, {"id", "attempt", "support"}, "a patch"));
    const auto id = item["id"].get<std::string>();
    ids.push_back(id);
    const auto patch = workload.find_patch(id);
    if (!patch) return {};  // candidate_from_names says so
    PatchAttempt attempt{.patch = *patch};
    if (item.contains("attempt")) {
        INFRARSI_ASSIGN(const std::int64_t number,
                        read_whole(item["attempt"], "attempt", 1, workload.prior.max_attempts));
        attempt.attempt = static_cast<int>(number);
    }
    if (item.contains("support")) {
        const auto support =
            item["support"].is_string() ? support_from(item["support"].get<std::string>()) : std::optional<Support>();
        if (!support) return fail(ErrorKind::invalid_input, "support must be plain, feedback or checked");
        attempt.support = *support;
    }
    attempts.push_back(attempt);
    return {};
}

Expected<void> read_candidate(const Workload& workload, const json& object, Request& request) {
    Settings settings;
    if (object.contains("settings")) {
        INFRARSI_ASSIGN(settings, settings_from_json(object["settings"]));
    }
    std::vector<std::string> ids;
    const json patches = object.value("patches", json::array());
    if (!patches.is_array()) return fail(ErrorKind::invalid_input, "patches must be a list");
    for (const json& item : patches) {
        if (item.is_string()) {
            ids.push_back(item.get<std::string>());
        } else {
            INFRARSI_TRY(read_patch_object(workload, item, ids, request.attempts));
        }
    }
    INFRARSI_ASSIGN(request.candidate, candidate_from_names(workload, settings, ids));
    return {};
}

// NaN has no JSON.
json numbers_or_null(const std::vector<double>& numbers) {
    json list = json::array();
    for (const double number : numbers) list.push_back(std::isnan(number) ? json(nullptr) : json(number));
    return list;
}

void add_learning(const Answer& answer, json& body) {
    const LearningRecord& learning = answer.learning;
    body["loss"] = numbers_or_null(learning.loss);
    body["grad_norm"] = numbers_or_null(learning.grad_norm);
    body["learning_rate"] = learning.learning_rate;
    body["optimizer_steps"] = learning.optimizer_steps;
    body["tokens"] = learning.tokens;
    body["sequence_length"] = learning.sequence_length;
    body["data_digest"] = learning.data_digest;
    for (const char* key : {"model_digest", "parameters", "dtypes", "frozen"}) body[key] = nullptr;
    if (answer.evidence) {
        body["model_digest"] = answer.evidence->model_digest;
        body["parameters"] = answer.evidence->parameters;
        body["dtypes"] = answer.evidence->dtypes;
        body["frozen"] = answer.evidence->frozen;
    }
}

void add_memory(const Answer& answer, json& body) {
    for (const char* key : {"peak_gib", "peak_reserved_gib", "peak_allocated_gib", "alloc_retries"}) {
        body[key] = nullptr;
    }
    if (!answer.memory) return;
    body["peak_gib"] = answer.memory->peak_gib;
    body["peak_reserved_gib"] = answer.memory->reserved_gib;
    body["peak_allocated_gib"] = answer.memory->allocated_gib;
    body["alloc_retries"] = answer.memory->alloc_retries;
}

void add_profile(const Profile& profile, json& body) {
    json& operators = body["operator_s"] = json::object();
    for (std::size_t p = 0; p < kPhaseCount; ++p) operators[std::string(kPhaseNames[p])] = profile.operator_s[p];
    body["phase_s"] = {{"forward", profile.forward_s},
                       {"backward", profile.backward_s},
                       {"collectives", profile.collectives_s},
                       {"optimizer", profile.optimizer_s},
                       {"data", profile.data_s}};
}

}  // namespace

Expected<Request> request_from_json(const Workload& workload, const json& object) {
    if (!object.is_object()) return fail(ErrorKind::invalid_input, "a request must be a JSON object");
    INFRARSI_TRY(check_keys(object, {"settings", "patches", "index", "repeat", "updates", "profile"}, "the request"));
    Request request;
    INFRARSI_TRY(read_candidate(workload, object, request));
    if (object.contains("index")) {
        INFRARSI_ASSIGN(request.index, read_whole(object["index"], "index", 0, kLastIndex));
    }
    if (object.contains("repeat")) {
        INFRARSI_ASSIGN(request.repeat, read_whole(object["repeat"], "repeat", 0, INT64_MAX));
    }
    if (object.contains("updates")) {
        INFRARSI_ASSIGN(const std::int64_t updates, read_whole(object["updates"], "updates", 1, workload.job.updates));
        request.updates = static_cast<int>(updates);
    }
    if (object.contains("profile")) {
        if (!object["profile"].is_boolean()) {
            return fail(ErrorKind::invalid_input, "profile must be true or false");
        }
        request.profile = object["profile"].get<bool>();
    }
    return request;
}

json to_json(const Answer& answer) {
    json body = {{"schema", kAnswerSchema},
                 {"workload", answer.workload},
                 {"seed", answer.seed},
                 {"index", answer.index},
                 {"repeat", answer.repeat},
                 {"candidate", answer.candidate},
                 {"status", to_string(answer.status)},
                 {"exit_code", answer.exit_code},
                 {"timed_out", answer.timed_out},
                 {"updates_requested", answer.updates_requested},
                 {"updates_done", answer.updates_done},
                 {"step_times_s", answer.step_times_s},
                 {"reported_step_times_s", answer.reported_step_times_s},
                 {"stderr", answer.stderr_text},
                 {"wall_s", answer.wall_s},
                 {"gpu_hours", answer.gpu_hours},
                 {"cost_units", answer.cost_units}};
    if (answer.detail == Detail::full) add_learning(answer, body);
    add_memory(answer, body);
    if (answer.profile) add_profile(*answer.profile, body);
    return body;
}

json invalid_answer(std::string_view message) {
    return {{"schema", kAnswerSchema}, {"status", "invalid"}, {"message", message}};
}

json truth_json(const Workload& workload, const Candidate& candidate, const Answer& answer) {
    const Truth found = truth(workload, candidate);
    json invariants = json::array();
    for (const BreachCause& cause : breaches(workload, candidate)) invariants.push_back(cause.breach->invariant);
    return {{"rel_time", found.rel_time},
            {"memory_gib", found.memory_gib},
            {"kind", to_string(answer.failed_patch ? Kind::patch_failed : found.kind)},
            {"breaches", invariants}};
}

double round_to_nine_digits(double number) {
    if (!std::isfinite(number)) return number;
    std::array<char, 32> text{};
    const auto written =
        std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific, 8);
    double rounded = 0;
    std::from_chars(text.data(), written.ptr, rounded);
    return rounded;
}

}  // namespace infrarsi::sim
