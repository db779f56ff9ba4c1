#include "core/campaign/state.h"

#include "core/campaign/state_json.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

json event(const std::string& type, json body, double t_wall) {
    static std::size_t seq = 0;
    body["type"] = type;
    body["seq"] = seq++;
    body["t_wall"] = t_wall;
    return body;
}

TrialRecord trial(const std::string& id, const std::string& role, OutcomeKind outcome, double log_speedup = 0) {
    TrialRecord record;
    record.id = id;
    record.role = role;
    record.number = role == "candidate" ? id.back() - '0' : 0;
    record.finished = true;
    record.outcome = outcome;
    record.log_speedup = log_speedup;
    record.cost_s = 10;
    record.device_s = 20;
    return record;
}

std::vector<json> campaign() {
    DoctorResult doctor;
    doctor.gate = 0.05;
    TrialRecord open = trial("t-3", "candidate", OutcomeKind::failed);
    open.finished = false;
    return {event("campaign_started",
                  {{"run_id", "r"},
                   {"root", "/p"},
                   {"contract_file", "/p/infrarsi.yaml"},
                   {"contract_text", ""},
                   {"nonce", "00"}},
                  100),
            event("session_started", json::object(), 100),
            event("trial_finished", {{"trial", to_json(trial("ref-1", "reference", OutcomeKind::valid))}}, 110),
            event("doctor_finished", {{"doctor", to_json(doctor)}}, 111),
            event("trial_finished", {{"trial", to_json(trial("t-1", "candidate", OutcomeKind::valid, 0.3))}}, 120),
            event("trial_finished", {{"trial", to_json(trial("t-2", "candidate", OutcomeKind::oom))}}, 130),
            event("session_started", json::object(), 1000),
            event("trial_started", {{"trial", to_json(open)}}, 1005)};
}

}  // namespace

TEST_CASE("a campaign's state is the fold of its events", "[campaign]") {
    const auto state = fold(campaign(), "/runs/r");
    REQUIRE(state);
    CHECK(state->run_id == "r");
    CHECK(state->sessions == 2);
    CHECK(state->screens_used() == 2);
    REQUIRE(state->incumbent());
    CHECK(state->incumbent()->id == "t-1");
    CHECK(state->history().size() == 2);
    // The time in which no runner lived is not the campaign's.
    CHECK(state->elapsed_s == Approx(35));
}

TEST_CASE("a stopped attempt stays in the ledger when its trial is run again", "[campaign]") {
    auto events = campaign();
    TrialRecord stopped = trial("t-3", "candidate", OutcomeKind::transient);
    stopped.cancelled = true;
    TrialRecord again = trial("t-3", "candidate", OutcomeKind::valid, 0.1);
    TrialRecord open = again;
    open.finished = false;
    events.push_back(event("trial_finished", {{"trial", to_json(stopped)}}, 1010));
    events.push_back(event("session_started", json::object(), 2000));
    events.push_back(event("trial_started", {{"trial", to_json(open)}}, 2001));
    events.push_back(event("trial_finished", {{"trial", to_json(again)}}, 2011));
    const auto state = fold(events, "/runs/r");
    REQUIRE(state);
    CHECK(state->trials.size() == 4);
    CHECK(state->ledger()[1].runs == 4);
    CHECK(state->ledger()[1].failed == 2);
    CHECK(state->ledger()[1].device_s == Approx(80));
}

TEST_CASE("the ledger counts failed and rejected trials too", "[campaign]") {
    const auto state = fold(campaign(), "/runs/r");
    REQUIRE(state);
    const auto ledger = state->ledger();
    CHECK(ledger[0].runs == 1);
    CHECK(ledger[1].runs == 2);
    CHECK(ledger[1].failed == 1);
    CHECK(ledger[1].wall_s == Approx(20));
    CHECK(ledger[1].device_s == Approx(40));
}

TEST_CASE("host faults and stopped trials do not use the budget", "[campaign]") {
    auto events = campaign();
    TrialRecord stopped = trial("t-4", "candidate", OutcomeKind::transient);
    stopped.cancelled = true;
    events.push_back(event("trial_finished", {{"trial", to_json(stopped)}}, 1010));
    events.push_back(
        event("trial_finished", {{"trial", to_json(trial("t-5", "candidate", OutcomeKind::transient))}}, 1020));
    const auto state = fold(events, "/runs/r");
    REQUIRE(state);
    CHECK(state->screens_used() == 2);
    CHECK(state->ledger()[1].runs == 4);
}

TEST_CASE("an event that this version does not know is an error, not a guess", "[campaign]") {
    auto events = campaign();
    events.push_back(event("trial_teleported", json::object(), 1010));
    CHECK(fold(events, "/runs/r").error().kind() == ErrorKind::unsupported);
    events.back() = event("trial_finished", {{"trial", {{"id", 7}}}}, 1010);
    CHECK(fold(events, "/runs/r").error().kind() == ErrorKind::corrupt);
}
