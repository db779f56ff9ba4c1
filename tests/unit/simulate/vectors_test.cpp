// The vectors that came with the specification: noise-free values to 1e-9, answers number by number.

#include "workloads.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

std::vector<std::string> invariants(const sim::Workload& workload, const sim::Candidate& candidate) {
    std::vector<std::string> names;
    for (const sim::BreachCause& cause : sim::breaches(workload, candidate)) names.push_back(cause.breach->invariant);
    return names;
}

// What differs, or nothing. As parsed: 1 and 1.0 are the same number.
void check_equal(const json& got, const json& wanted) {
    if (got == wanted) {
        SUCCEED();
        return;
    }
    FAIL_CHECK(json::diff(wanted, got).dump(1));
}

}  // namespace

TEST_CASE("noise-free values are those of the vectors", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        INFO(name);
        const sim::Workload workload = sample::workload(name);
        const auto lines = sample::vectors(name, "truth");
        CHECK(lines.size() == 150);
        for (const json& line : lines) {
            INFO(line.dump());
            const sim::Candidate candidate = sample::candidate(workload, line["settings"], line["patches"]);
            const sim::Truth truth = sim::truth(workload, candidate);
            CHECK(std::abs(truth.rel_time - line["rel_time"].get<double>()) <= 1e-9);
            CHECK(std::abs(truth.memory_gib - line["memory_gib"].get<double>()) <= 1e-9);
            CHECK(sim::to_string(truth.outcome) == line["status"].get<std::string>());
            CHECK(sim::to_string(truth.kind) == line["kind"].get<std::string>());
            CHECK(invariants(workload, candidate) == line["breaches"].get<std::vector<std::string>>());
        }
    }
}

TEST_CASE("answers are those of the vectors, number by number", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        const auto lines = sample::vectors(name, "observation");
        CHECK(lines.size() == 20);
        for (const json& line : lines) {
            INFO(name << " " << line["request"].dump());
            sim::Simulator simulator(workload, line["seed"]);
            check_equal(sim::to_json(simulator.answer(sample::request(workload, line["request"]))), line["answer"]);
        }
    }
}

TEST_CASE("index and repeat count by themselves", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        const auto lines = sample::vectors(name, "sequence");
        REQUIRE(lines.size() == 1);
        sim::Simulator simulator(workload, lines[0]["seed"]);
        for (std::size_t i = 0; i < lines[0]["requests"].size(); ++i) {
            INFO(name << " request " << i);
            check_equal(sim::to_json(simulator.answer(sample::request(workload, lines[0]["requests"][i]))),
                        lines[0]["answers"][i]);
        }
    }
}

TEST_CASE("beliefs, drift and the luck of attempts are those of the vectors", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        INFO(name);
        const sim::Workload workload = sample::workload(name);
        const json facts = sample::facts(name)["seed_0"];
        const sim::Beliefs beliefs = sim::draw_beliefs(workload, 0);
        CHECK(*beliefs.target_spearman == Approx(facts["prior_target"].get<double>()).margin(1e-12));
        CHECK(*beliefs.spearman == Approx(facts["prior_spearman"].get<double>()).margin(1e-12));
        REQUIRE(beliefs.atoms.size() == facts["prior"].size());
        for (std::size_t i = 0; i < beliefs.atoms.size(); ++i) {
            const sim::Atom& atom = beliefs.atoms[i];
            const json& wanted = facts["prior"][i];
            CHECK(atom.name == wanted["atom"].get<std::string>());
            CHECK(sim::true_log_gain(workload, atom) == Approx(wanted["truth"].get<double>()).margin(1e-12));
            CHECK(atom.prior_log_gain == Approx(wanted["prior"].get<double>()).margin(1e-12));
            CHECK(atom.declared_gib == Approx(wanted["declared_gib"].get<double>()).margin(1e-9));
        }
        sim::Simulator simulator(workload, 0);
        for (std::size_t i = 0; i < facts["drift"].size(); ++i) {
            CHECK(simulator.drift(static_cast<std::int64_t>(i)) ==
                  Approx(facts["drift"][i].get<double>()).margin(1e-15));
        }
        for (const auto& [id, uniforms] : facts["attempt_uniforms"].items()) {
            const int patch = workload.find_patch(id).value();
            for (std::size_t a = 0; a < uniforms.size(); ++a) {
                CHECK(sim::attempt_luck(workload, 0, patch, static_cast<int>(a) + 1) == uniforms[a].get<double>());
            }
        }
    }
}
