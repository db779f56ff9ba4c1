#pragma once
// The four shipped workloads and their vectors, for tests of the simulated job.

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/simulate/simulator.h"

namespace infrarsi::sample {

inline const std::vector<std::string>& workload_names() {
    static const std::vector<std::string> names = {"w1-dense-9b-8xh100", "w2-moe-26b-8xh200", "w3-dense-27b-8xh200",
                                                   "w4-moe-35b-16xh100"};
    return names;
}

inline std::string workload_path(const std::string& name) {
    return fmt::format("{}/seeds/workloads/{}.yaml", INFRARSI_SOURCE_DIR, name);
}

inline sim::Workload workload(const std::string& name, const std::vector<std::string>& overrides = {}) {
    auto loaded = sim::load_workload(workload_path(name), overrides);
    if (!loaded) FAIL(loaded.error().describe());
    return *loaded;
}

inline nlohmann::json facts(const std::string& name) {
    auto read = read_json(fmt::format("{}/fixtures/workloads/{}.facts.json", INFRARSI_TESTS_DIR, name));
    if (!read) FAIL(read.error().describe());
    return *read;
}

// The lines of one type: truth, observation or sequence.
inline std::vector<nlohmann::json> vectors(const std::string& name, const std::string& type) {
    auto text = read_file(fmt::format("{}/fixtures/workloads/{}.jsonl", INFRARSI_TESTS_DIR, name));
    if (!text) FAIL(text.error().describe());
    std::vector<nlohmann::json> found;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        auto json = nlohmann::json::parse(line);
        if (json["type"] == type) found.push_back(std::move(json));
    }
    return found;
}

inline sim::Candidate candidate(const sim::Workload& workload, const nlohmann::json& settings,
                                const nlohmann::json& patches = nlohmann::json::array()) {
    auto named = settings_from_json(settings);
    if (!named) FAIL(named.error().describe());
    auto result = sim::candidate_from_names(workload, *named, patches.get<std::vector<std::string>>());
    if (!result) FAIL(result.error().describe());
    return *result;
}

inline sim::Request request(const sim::Workload& workload, const nlohmann::json& json) {
    auto result = sim::request_from_json(workload, json);
    if (!result) FAIL(result.error().describe());
    return *result;
}

}  // namespace infrarsi::sample
