// Console excerpts of real jobs with the right reading of each: tests/fixtures/logs/cases.json.

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/measure/failure_scan.h"
#include "core/measure/log_reader.h"

using namespace infrarsi;

namespace {

const std::filesystem::path kLogs = std::filesystem::path(INFRARSI_TESTS_DIR) / "fixtures/logs";

struct Reading {
    std::map<std::int64_t, LogReading> steps;
    std::string failure_class = "none";
    std::string failure_text;
    std::optional<OutOfMemory> oom;
};

Reading read_log(const std::string& file) {
    Reading result;
    PrimaryFailure primary;
    auto reader = make_log_reader(Stack::auto_);
    std::ifstream stream(kLogs / file);
    REQUIRE(stream.good());
    for (std::string raw; std::getline(stream, raw);) {
        if (const auto reading = reader->read(clean_line(raw))) {
            result.steps[reading->step] = *reading;
        }
        const auto signature = match_failure(raw);
        if (!signature || signature->warning) {
            continue;
        }
        FailureLine line;
        line.failure_class = signature->failure_class;
        line.text = raw;
        primary.see(*signature, line);
        if (const auto oom = read_out_of_memory(raw)) {
            result.oom = oom;
        }
    }
    if (primary.line()) {
        result.failure_class = primary.line()->failure_class;
        result.failure_text = primary.line()->text;
    }
    return result;
}

}  // namespace

TEST_CASE("real logs are read as people read them", "[measure]") {
    const auto cases = read_json(kLogs / "cases.json").value();
    REQUIRE(cases.size() == 44);
    int ddp = 0;
    for (const auto& item : cases) {
        const auto file = item.at("file").get<std::string>();
        INFO(file);
        const auto reading = read_log(file);
        const auto classes = item.at("classes").get<std::set<std::string>>();
        INFO(reading.failure_class << ": " << reading.failure_text);
        CHECK(classes.contains(reading.failure_class));
        if (!item.contains("steps")) {
            continue;
        }
        ++ddp;
        if (item.at("steps").empty()) {
            CHECK(reading.steps.empty());
        }
        for (const auto& step : item.at("steps")) {
            const auto n = step.at("step").get<std::int64_t>();
            INFO("step " << n);
            REQUIRE(reading.steps.contains(n));
            const auto& held = reading.steps.at(n);
            if (step.contains("loss")) {
                CHECK(held.loss == Approx(step.at("loss").get<double>()));
            }
            if (step.contains("step_time_s")) {
                CHECK(held.step_time_s == Approx(step.at("step_time_s").get<double>()));
            }
            if (item.contains("tokens_per_update")) {
                CHECK(held.tokens_per_update == item.at("tokens_per_update").get<std::int64_t>());
            }
        }
        if (item.contains("tried_gib")) {
            REQUIRE(reading.oom);
            CHECK(reading.oom->tried_gib == Approx(item.at("tried_gib").get<double>()).epsilon(1e-3));
        }
    }
    CHECK(ddp == 13);
}
