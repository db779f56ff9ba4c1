#include "core/search/controller.h"

#include "landscape.h"

using namespace infrarsi;
using search_test::knob;
using search_test::Landscape;
using search_test::text;
using search_test::whole;

namespace {

class Patches final : public CandidateSource {
public:
    explicit Patches(std::vector<Patch> patches) : patches_(std::move(patches)) {}
    std::vector<Patch> patches(const std::vector<Outcome>& /*history*/) override { return patches_; }

private:
    std::vector<Patch> patches_;
};

Patch patch(const std::string& title, const std::string& origin) {
    return {.title = title,
            .diff = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-old\n+" + title + "\n",
            .origin = origin};
}

// A job of a few knobs, without a batch or constraints unless given.
struct Job {
    Contract contract;
    LegalSet legal;
    SearchProblem problem;

    explicit Job(std::vector<Knob> knobs, std::vector<std::string> constraints = {}) {
        contract.knobs = std::move(knobs);
        contract.constraints = std::move(constraints);
        legal = *LegalSet::of(contract);
        problem.contract = &contract;
        problem.legal = &legal;
        problem.reference_gib = 40;
        problem.capacity_gib = 80;
    }
    Job(const Job&) = delete;
};

Outcome valid(const Candidate& candidate, double gain, double peak_gib = 41) {
    return {
        .candidate = candidate, .kind = OutcomeKind::valid, .log_speedup = gain, .sigma = 0.01, .peak_gib = peak_gib};
}

// Runs the search to its end and gives back the history.
template <class Run>
std::vector<Outcome> run_to_end(Controller& controller, Run run, int most = 40) {
    std::vector<Outcome> history;
    while (static_cast<int>(history.size()) < most) {
        const auto proposal = controller.next(history);
        if (!proposal) break;
        CHECK_FALSE(proposal->reason.empty());
        history.push_back(run(proposal->candidate));
    }
    return history;
}

std::set<std::string> signatures(const std::vector<Outcome>& history) {
    std::set<std::string> result;
    for (const Outcome& outcome : history) result.insert(outcome.candidate.signature());
    return result;
}

}  // namespace

TEST_CASE("a search without a choice says so at once", "[search]") {
    Job none({});
    const auto controller = make_controller(none.problem, nullptr);
    CHECK_FALSE(controller->next({}));
    CHECK(controller->why_done().find("nothing to search") != std::string::npos);

    Job one({knob("only", "compile", {text("x")}, text("x")), knob("unset", "", {Value{}}, Value{})});
    const auto other = make_controller(one.problem, nullptr);
    CHECK_FALSE(other->next({}));
    CHECK(other->why_done().find("nothing to search") != std::string::npos);
}

TEST_CASE("a search in which all is illegal says so", "[search]") {
    Job job({knob("micro_batch", "micro_batch", {whole(1), whole(3)}, whole(1)),
             knob("grad_accum", "grad_accum", {whole(4), whole(5)}, whole(4))});
    const auto controller = make_controller(job.problem, nullptr);
    CHECK_FALSE(controller->next({}));
    CHECK(controller->why_done().find("legal") != std::string::npos);
}

TEST_CASE("one knob with an unset reference is probed and then done", "[search]") {
    Job job({knob("threads", "host.omp_threads", {Value{}, whole(2)}, Value{})});
    const auto controller = make_controller(job.problem, nullptr);
    const auto history = run_to_end(*controller, [](const Candidate& c) { return valid(c, 0.2); });
    REQUIRE(history.size() == 1);
    CHECK(history[0].candidate.settings == Settings{{"threads", whole(2)}});
    CHECK(controller->why_done().find("two-sigma upside") != std::string::npos);
}

TEST_CASE("a fresh controller with the same history proposes the same", "[search]") {
    Landscape landscape(5);
    const auto kept = make_controller(landscape.problem(), nullptr);
    std::vector<Outcome> history;
    for (int trial = 0; trial < 16; ++trial) {
        const auto proposal = kept->next(history);
        const auto fresh = make_controller(landscape.problem(), nullptr)->next(history);
        REQUIRE(proposal.has_value() == fresh.has_value());
        if (!proposal) break;
        INFO("trial " << trial);
        CHECK(proposal->candidate.signature() == fresh->candidate.signature());
        CHECK(proposal->reason == fresh->reason);
        CHECK(proposal->op == fresh->op);
        history.push_back(landscape.run(trial, proposal->candidate));
    }
    CHECK(history.size() > 10);
}

TEST_CASE("proposals are legal, conserve the batch and never repeat", "[search]") {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        Landscape landscape(seed);
        const auto controller = make_controller(landscape.problem(), nullptr);
        const auto history = run_to_end(
            *controller,
            [&](const Candidate& candidate) {
                CHECK_FALSE(candidate.is_reference());
                CHECK_FALSE(landscape.legal().why_illegal(landscape.contract().complete(candidate.settings)));
                return landscape.run(0, candidate);
            },
            24);
        CHECK(signatures(history).size() == history.size());
    }
}

TEST_CASE("a candidate in another spelling counts as visited", "[search]") {
    Job job({knob("threads", "host.omp_threads", {whole(1), whole(2)}, whole(1))});
    const auto controller = make_controller(job.problem, nullptr);
    CHECK(controller->next({}));
    const Candidate written{.settings = {{"threads", text("2")}}, .patches = {}};
    Outcome failed{.candidate = written, .kind = OutcomeKind::failed};
    CHECK_FALSE(controller->next({failed}));
}

TEST_CASE("the starts are the prior's best, a random one and the strongest setting", "[search]") {
    Landscape landscape(3);
    const auto controller = make_controller(landscape.problem(), nullptr);
    std::vector<Outcome> history;
    std::vector<std::string> ops;
    for (int trial = 0; trial < 3; ++trial) {
        const auto proposal = controller->next(history);
        REQUIRE(proposal);
        ops.push_back(proposal->op);
        history.push_back(landscape.run(trial, proposal->candidate));
    }
    CHECK(ops == std::vector<std::string>{"start:prior", "start:random", "start:strongest"});
    CHECK(history[0].candidate.settings.size() >= 2);
    CHECK(history[2].candidate.settings.size() == 1);
}

TEST_CASE("a host's fault is retried once and then left", "[search]") {
    Landscape landscape(3);
    const auto controller = make_controller(landscape.problem(), nullptr);
    const auto first = controller->next({});
    REQUIRE(first);
    const Outcome fault{.candidate = first->candidate, .kind = OutcomeKind::transient};
    const auto again = controller->next({fault});
    REQUIRE(again);
    CHECK(again->candidate.signature() == first->candidate.signature());
    const auto other = controller->next({fault, fault});
    REQUIRE(other);
    CHECK(other->candidate.signature() != first->candidate.signature());
}

TEST_CASE("the user's patches go first, alone, and a failed one is dropped", "[search]") {
    Job job({knob("compile", "compile", {false, true}, false), knob("liger", "kernel.liger", {false, true}, false)});
    Patches source({patch("mine", "user"), patch("bad", "user"), patch("theirs", "llm:x")});
    const auto controller = make_controller(job.problem, &source);
    const auto history = run_to_end(*controller, [](const Candidate& candidate) {
        for (const Patch& part : candidate.patches) {
            if (part.title == "bad") return Outcome{.candidate = candidate, .kind = OutcomeKind::failed};
        }
        const double gain = 0.1 * static_cast<double>(candidate.settings.size() + candidate.patches.size());
        return valid(candidate, gain);
    });
    REQUIRE(history.size() > 3);
    CHECK(history[0].candidate.settings.empty());
    CHECK(history[0].candidate.patches.front().title == "mine");
    CHECK(history[1].candidate.patches.back().title == "bad");
    for (std::size_t i = 2; i < history.size(); ++i) {
        for (const Patch& part : history[i].candidate.patches) CHECK(part.title != "bad");
    }
    double best = 0;
    for (const Outcome& outcome : history) best = std::max(best, outcome.log_speedup);
    CHECK(best == Approx(0.4));  // both settings, both good patches
}

TEST_CASE("patches alone are a search too", "[search]") {
    Job job({});
    Patches source({patch("a", "recipe:sdpa"), patch("b", "recipe:foreach")});
    const auto controller = make_controller(job.problem, &source);
    const auto history = run_to_end(
        *controller, [](const Candidate& c) { return valid(c, 0.05 * static_cast<double>(c.patches.size())); });
    REQUIRE(history.size() == 2);
    CHECK(history[1].candidate.patches.size() == 2);  // the second on top of the first, which became the incumbent
}

TEST_CASE("what runs out of memory is completed with a saver", "[search]") {
    Job job({knob("recompute", "activation_recompute", {text("none"), text("full")}, text("full")),
             knob("chunked", "loss.chunked", {whole(1), whole(8)}, whole(1)),
             knob("liger", "kernel.liger", {false, true}, false)});
    job.problem.reference_gib = 66;
    // Not recomputing is worth 40 % but needs 84 GiB; liger alone costs 2 % and saves 10 GiB.
    const auto run = [](const Candidate& candidate) {
        double gain = 0;
        double need = 66;
        if (candidate.settings.contains("recompute")) gain += 0.4, need += 18;
        if (candidate.settings.contains("liger")) gain -= 0.02, need -= 10;
        if (candidate.settings.contains("chunked")) gain -= 0.03, need -= 1;
        if (need > 80) return Outcome{.candidate = candidate, .kind = OutcomeKind::oom, .need_gib = 82.0};
        return valid(candidate, gain, need);
    };
    const auto controller = make_controller(job.problem, nullptr);
    const auto history = run_to_end(*controller, run, 10);
    double best = 0;
    for (const Outcome& outcome : history) best = std::max(best, outcome.log_speedup);
    CHECK(best >= 0.35);
}

TEST_CASE("a bundle that ran out of memory is proposed again with what covers the shortfall", "[search]") {
    Job job({knob("recompute", "activation_recompute", {text("none"), text("full")}, text("full")),
             knob("compile", "compile", {false, true}, false), knob("liger", "kernel.liger", {false, true}, false)});
    job.problem.reference_gib = 60;
    const auto settings = [](Settings s) { return Candidate{.settings = std::move(s), .patches = {}}; };
    const std::vector<Outcome> history{
        valid(settings({{"liger", true}}), 0.0, 50),
        valid(settings({{"compile", true}}), 0.1, 60),
        {.candidate = settings({{"compile", true}, {"recompute", text("none")}}),
         .kind = OutcomeKind::oom,
         .need_gib = 84.0},
    };
    const auto proposal = make_controller(job.problem, nullptr)->next(history);
    REQUIRE(proposal);
    CHECK(proposal->op == "complete");
    CHECK(proposal->candidate.settings == Settings{{"compile", true}, {"liger", true}, {"recompute", text("none")}});
    CHECK(proposal->reason.find("ran out of memory") != std::string::npos);
    CHECK(proposal->reason.find("liger=true to save") != std::string::npos);
}

TEST_CASE("gains measured apart are combined, losses are left out", "[search]") {
    Job job({knob("compile", "compile", {false, true}, false), knob("fused", "optim.fused", {false, true}, false),
             knob("liger", "kernel.liger", {false, true}, false), knob("unknown", "", {false, true}, false)});
    const auto alone = [](const char* name, double gain) {
        return valid({.settings = {{name, true}}, .patches = {}}, gain);
    };
    const std::vector<Outcome> history{alone("compile", 0.2), alone("fused", 0.1), alone("liger", -0.1)};
    const auto proposal = make_controller(job.problem, nullptr)->next(history);
    REQUIRE(proposal);
    CHECK(proposal->op == "combine");
    CHECK(proposal->candidate.settings == Settings{{"compile", true}, {"fused", true}});
    CHECK(proposal->expected_log_gain == Approx(0.3).margin(0.02));
}

TEST_CASE("a pair that crashes is kept apart afterwards", "[search]") {
    Job job({knob("compile", "compile", {false, true}, false), knob("liger", "kernel.liger", {false, true}, false),
             knob("fused", "optim.fused", {false, true}, false)});
    const auto controller = make_controller(job.problem, nullptr);
    int crashes = 0;
    const auto history = run_to_end(*controller, [&](const Candidate& candidate) {
        const bool has_both = candidate.settings.contains("compile") && candidate.settings.contains("liger");
        if (!has_both) return valid(candidate, 0.1 * static_cast<double>(candidate.settings.size()));
        ++crashes;
        return Outcome{.candidate = candidate, .kind = OutcomeKind::failed};
    });
    double best = 0;
    for (const Outcome& outcome : history) best = std::max(best, outcome.log_speedup);
    CHECK(best == Approx(0.2));
    CHECK(crashes <= 2);
}

TEST_CASE("a setting that the rules rate low still gets its turn", "[search]") {
    Job job({knob("offload", "offload.optimizer", {false, true}, false),
             knob("compile", "compile", {false, true}, false), knob("fused", "optim.fused", {false, true}, false)});
    const auto controller = make_controller(job.problem, nullptr);
    const auto history = run_to_end(*controller, [](const Candidate& candidate) {
        return valid(candidate, candidate.settings.contains("offload") ? 0.3 : 0.0);
    });
    double best = 0;
    for (const Outcome& outcome : history) best = std::max(best, outcome.log_speedup);
    CHECK(best == Approx(0.3));
}

TEST_CASE("percentages read as a person writes them", "[search]") {
    Job job({knob("threads", "host.omp_threads", {Value{}, whole(2)}, Value{}),
             knob("workers", "dataloader.workers", {whole(1), whole(2), whole(4)}, whole(1))});
    const auto proposal = make_controller(job.problem, nullptr)->next({});
    REQUIRE(proposal);
    CHECK(proposal->reason.find(" %") != std::string::npos);
    CHECK(proposal->reason.find("fits with P=") != std::string::npos);
}
