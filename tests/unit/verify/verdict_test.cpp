#include "core/verify/verdict.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sample.h"

using namespace infrarsi;
using Id = InvariantId;

namespace {

Verdict judged(const Receipt& candidate, const InvariantRules& rules = {}) {
    return judge(candidate, sample::evidence(), rules);
}

}  // namespace

TEST_CASE("an honest candidate is valid, and each result says what was compared", "[verify]") {
    const auto verdict = judged(sample::receipt());
    INFO(verdict.reason);
    CHECK(verdict.valid);
    REQUIRE(verdict.results.size() == kInvariantCount);
    for (int i = 0; i < kInvariantCount; ++i) {
        const auto& result = verdict.results[static_cast<std::size_t>(i)];
        CHECK(static_cast<int>(result.id) == i);
        CHECK_FALSE(result.evidence.empty());
        CHECK(invariant_from_string(to_string(result.id)) == result.id);
    }
    CHECK(verdict[Id::optimizer_steps].evidence.find("state after updates 5, 30 agrees") != std::string::npos);
    CHECK(verdict[Id::speed_reproduces].status == Status::unchecked);
    CHECK(verdict[Id::eval_matches].status == Status::unchecked);
    CHECK(layer_of(Id::frozen_files) == 2);
    CHECK(mode_of(Id::precision) == InvariantMode::informational);
    CHECK_FALSE(invariant_from_string("nothing"));
}

TEST_CASE("a verdict survives JSON", "[verify]") {
    auto receipt = sample::receipt();
    receipt.execution.exit_code = 3;
    const auto verdict = judged(receipt);
    const auto back = verdict_from_json(to_json(verdict));
    REQUIRE(back);
    CHECK(to_json(*back) == to_json(verdict));
    CHECK(back->reason == verdict.reason);
    auto broken = to_json(verdict);
    std::swap(broken["results"][0], broken["results"][1]);
    CHECK_FALSE(verdict_from_json(broken));
    broken = to_json(verdict);
    broken["results"][0]["status"] = "perhaps";
    CHECK_FALSE(verdict_from_json(broken));
    CHECK_FALSE(verdict_from_json(nlohmann::json::object()));
}

TEST_CASE("an unchecked item rejects when it is required", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt();
    for (auto* r : {&receipt, &evidence.reference}) {
        for (auto& u : r->series) {
            u.data.clear();
        }
    }
    InvariantRules rules;
    const auto strict = judge(receipt, evidence, rules);
    CHECK(strict[Id::same_data].status == Status::unchecked);
    CHECK_FALSE(strict[Id::same_data].remedy.empty());
    CHECK_FALSE(strict.valid);
    CHECK(strict.reason.starts_with("same_data (unchecked)"));
    rules.strict = false;
    CHECK(judge(receipt, evidence, rules).valid);
    rules.required = {"same_data"};
    CHECK_FALSE(judge(receipt, evidence, rules).valid);
}

TEST_CASE("a job whose batches have no sequence axis is judged by its samples and tokens", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt();
    const auto without_axis = [](Receipt& r) {
        for (auto& u : r.series) u.seq_len.reset();
    };
    without_axis(receipt);
    // Where the reference has one, a candidate that states none shows nothing.
    CHECK(judge(receipt, evidence, {})[Id::same_workload].status == Status::fail);
    without_axis(evidence.reference);
    for (auto& repeat : evidence.repeats) without_axis(repeat);
    CHECK(judge(receipt, evidence, {})[Id::same_workload].status == Status::pass);
    for (auto& u : receipt.series) u.samples = *u.samples / 2;
    CHECK(judge(receipt, evidence, {})[Id::same_workload].status == Status::fail);
    receipt = sample::receipt();
    without_axis(receipt);
    for (auto& u : receipt.series) u.samples.reset();
    CHECK(judge(receipt, evidence, {})[Id::same_workload].status == Status::fail);
}

TEST_CASE("conditional items count when they are configured", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt();
    InvariantRules rules;
    rules.eval = EvalCheck{"python evaluate.py", "loss", 0.03};
    rules.resume = ResumeCheck{10};
    rules.tests = {"pytest -q"};
    auto verdict = judge(receipt, evidence, rules);
    CHECK(verdict.rejecting(rules) == std::vector<Id>{Id::eval_matches, Id::resume_continues, Id::user_tests});

    evidence.reference.eval = CheckResult{"python evaluate.py", 0, 3.0, ""};
    receipt.eval = CheckResult{"python evaluate.py", 0, 3.05, ""};
    receipt.resume = CheckResult{"", 0, 0.001, ""};
    receipt.tests = {{"pytest -q", 0, {}, ""}};
    CHECK(judge(receipt, evidence, rules).valid);

    receipt.eval->value = 3.2;
    CHECK(judge(receipt, evidence, rules)[Id::eval_matches].status == Status::fail);
    receipt.eval->value = 3.0;
    receipt.resume->value = -0.05;
    CHECK(judge(receipt, evidence, rules)[Id::resume_continues].status == Status::fail);
    receipt.resume->value = 0.0;
    receipt.tests[0].exit_code = 1;
    CHECK(judge(receipt, evidence, rules)[Id::user_tests].status == Status::fail);
}

TEST_CASE("the loss rule as printed", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt();
    // The same data: the largest deviation of one update is held.
    receipt.series[20].loss = *receipt.series[20].loss * 1.04;
    CHECK(judge(receipt, evidence, {})[Id::loss_within_tolerance].status == Status::fail);

    // Data that is not proven the same: the window's mean is held, and one update hardly moves it.
    for (auto* r : {&receipt, &evidence.reference}) {
        for (auto& u : r->series) {
            u.data.clear();
        }
    }
    CHECK(judge(receipt, evidence, {})[Id::loss_within_tolerance].status == Status::pass);
    for (auto& u : receipt.series) {
        *u.loss *= 1.04;
    }
    CHECK(judge(receipt, evidence, {})[Id::loss_within_tolerance].status == Status::fail);

    // A repeat that disagrees beyond the tolerance widens it to 3σ√(2/k): here k = 20 and the mean is near 2.96.
    for (std::size_t i = 0; i < evidence.repeats[0].series.size(); ++i) {
        *evidence.repeats[0].series[i].loss *= i % 2 == 0 ? 1.1 : 0.9;
    }
    evidence.noise.sigma_loss = 0.3;
    const auto wide = judge(receipt, evidence, {})[Id::loss_within_tolerance];
    CHECK(wide.status == Status::pass);
    CHECK(wide.evidence.find("widened") != std::string::npos);
    evidence.noise.sigma_loss = 0.03;  // never narrower than declared
    CHECK(judge(receipt, evidence, {})[Id::loss_within_tolerance].status == Status::fail);
}

TEST_CASE("the first gradient norm is a veto only for the same first batch", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt();
    *receipt.series[0].grad_norm *= 1.1;
    CHECK(judge(receipt, evidence, {})[Id::grad_norm_within_tol].status == Status::fail);
    for (auto* r : {&receipt, &evidence.reference}) {
        for (auto& u : r->series) {
            u.data.clear();
        }
    }
    CHECK(judge(receipt, evidence, {})[Id::grad_norm_within_tol].status == Status::reported);
}

TEST_CASE("the permitted precisions are the menu and the reference's own", "[verify]") {
    auto receipt = sample::receipt();
    receipt.audit->matmul["mm"]["bfloat16"] = 12;
    receipt.audit->matmul["bmm"]["bool"] = 12;  // a mask
    CHECK(judged(receipt)[Id::precision].status == Status::fail);
    CHECK_FALSE(judged(receipt).valid);
    InvariantRules rules;
    rules.precision_menu = {"bf16"};
    CHECK(judged(receipt, rules)[Id::precision].status == Status::pass);
    receipt.audit.reset();
    CHECK(judged(receipt, rules)[Id::precision].status == Status::reported);
    receipt.param_dtypes["float16"] = 5;
    CHECK(judged(receipt, rules)[Id::precision].status == Status::fail);
}

TEST_CASE("a noisy host does not make two clocks of one run disagree", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt(1.0);
    // Steps scatter widely, both clocks see each of them; a state check after update 15 is in 15 by the job's clock and
    // in 16 by the harness's.
    const auto scatter = [](Receipt& r, unsigned seed) {
        double t = 1;
        for (auto& u : r.series) {
            seed = seed * 1664525u + 1013904223u;
            const double step = 0.5 + 1.0 * (seed >> 8) / double(1u << 24);
            u.reported_s = step + (u.n == 15 ? 0.3 : 0.0) - (u.n == 16 ? 0.3 : 0.0);
            t += step;
            u.t_s = t;
        }
        r.execution.duration_s = t + 1;
        r.execution.wall_end_s = r.execution.wall_start_s + t + 1;
    };
    scatter(receipt, 7);
    scatter(evidence.reference, 99);
    CHECK(judge(receipt, evidence, {})[Id::timing_consistent].status == Status::pass);
}

TEST_CASE("a constant cost that the job does not time is not a lie", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt(0.4);
    // 100 ms a step that the job does not see, in both: |Δ ln| is over the limit, the seconds agree.
    for (auto& u : receipt.series) {
        u.reported_s = 0.3;
    }
    for (auto& u : evidence.reference.series) {
        u.reported_s = 1.1;
    }
    CHECK(judge(receipt, evidence, {})[Id::timing_consistent].status == Status::pass);
    for (auto& u : receipt.series) {
        u.reported_s = 0.2;
    }
    CHECK(judge(receipt, evidence, {})[Id::timing_consistent].status == Status::fail);
    for (auto* r : {&receipt, &evidence.reference}) {
        for (auto& u : r->series) {
            u.reported_s.reset();
        }
    }
    const auto none = judge(receipt, evidence, {})[Id::timing_consistent];
    CHECK(none.status == Status::pass);
    CHECK(none.evidence.find("no step time of its own") != std::string::npos);
}

TEST_CASE("a harness's own stop is a clean end", "[verify]") {
    auto receipt = sample::receipt();
    receipt.execution.exit_code.reset();
    receipt.execution.signal = 15;
    receipt.execution.stopped = "after_updates";
    FailureLine line{"traceback", "Traceback (most recent call last):", "stderr", 3, receipt.series.back().t_s + 1};
    receipt.failures = {line};
    CHECK(judged(receipt).valid);
    receipt.failures[0].t_s = receipt.series[3].t_s;
    CHECK(judged(receipt)[Id::no_errors].status == Status::fail);
}

TEST_CASE("state that is late, stale or elsewhere", "[verify]") {
    const auto evidence = sample::evidence();
    // One buffer deferred by an update (the deferred router bias of the paper's source review).
    auto receipt = sample::receipt();
    receipt.probes[1].buffers["router.bias"] = receipt.probes[0].buffers["router.bias"];
    receipt.probes[3].buffers["router.bias"] = receipt.probes[2].buffers["router.bias"];
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::fail);

    // The same, computed: the value of one update ago, which differs from the candidate's own earlier probe.
    receipt = sample::receipt();
    receipt.probes[0].buffers["router.bias"] = sample::state(500, 3);
    receipt.probes[1].buffers["router.bias"] = sample::state(500, 4);
    receipt.probes[2].buffers["router.bias"] = sample::state(500, 28);
    receipt.probes[3].buffers["router.bias"] = sample::state(500, 29);
    const auto late = judge(receipt, evidence, {})[Id::optimizer_steps];
    CHECK(late.status == Status::fail);
    CHECK(late.evidence.find("one update behind") != std::string::npos);

    // All parameters late.
    receipt = sample::receipt();
    for (auto& probe : receipt.probes) {
        for (int i = 0; i < sample::kTensors; ++i) {
            probe.params[fmt::format("blocks.{}.weight", i)] = sample::state(i, probe.n - 1);
        }
    }
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].evidence.find("the update before") != std::string::npos);

    // One tensor that rounding alone drives (a key bias) may be anywhere.
    receipt = sample::receipt();
    for (auto& probe : receipt.probes) {
        probe.params["blocks.7.weight"] += 800;
    }
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::pass);

    // A tensor that is no longer there, and a buffer that must not change.
    receipt = sample::receipt();
    receipt.probes[1].params.erase("blocks.3.weight");
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::fail);
    receipt = sample::receipt();
    for (auto& probe : receipt.probes) {
        probe.buffers["mask"] = 0;
    }
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::fail);
    receipt = sample::receipt();
    for (auto& probe : receipt.probes) {
        probe.params["blocks.3.weight"] = std::nan("");
    }
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::pass);  // one of many: the loss shows it
    for (auto& probe : receipt.probes) {
        for (auto& [name, value] : probe.params) {
            value = std::nan("");
        }
    }
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::fail);
}

TEST_CASE("only a learning rate: an equal schedule is unchecked, another one fails", "[verify]") {
    auto evidence = sample::evidence();
    auto receipt = sample::receipt();
    for (auto* r : {&receipt, &evidence.reference}) {
        for (auto& u : r->series) {
            u.opt_steps.reset();
        }
        r->probes.clear();
    }
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::unchecked);
    *receipt.series[9].lr *= 0.9;
    CHECK(judge(receipt, evidence, {})[Id::optimizer_steps].status == Status::fail);
}

TEST_CASE("promotion needs a gain that reproduces", "[verify]") {
    const auto receipt = sample::receipt();
    const auto evidence = sample::evidence();
    GainEstimate gain;
    gain.reason = "because";
    gain.decision = Decision::promote;
    CHECK(judge_promotion(receipt, evidence, {}, gain).valid);
    gain.decision = Decision::reject;
    CHECK(judge_promotion(receipt, evidence, {}, gain)[Id::speed_reproduces].status == Status::fail);
    gain.decision = Decision::undecided;
    const auto open = judge_promotion(receipt, evidence, {}, gain);
    CHECK_FALSE(open.valid);
    CHECK(open[Id::speed_reproduces].status == Status::unchecked);
    CHECK(open.reason.find("undecided") != std::string::npos);
    CHECK(verdict_from_json(to_json(open)).value().rejecting({}) == std::vector<Id>{Id::speed_reproduces});
}
