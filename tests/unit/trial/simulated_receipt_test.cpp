#include "core/trial/simulated_receipt.h"

#include "core/simulate/oracle.h"
#include "core/verify/verdict.h"
#include "tests/unit/simulate/workloads.h"

using namespace infrarsi;

namespace {

// One campaign's reference and judge.
class Bench {
public:
    Bench(const std::string& name, std::uint64_t seed, const std::vector<std::string>& overrides = {})
        : workload_(sample::workload(name, overrides)), simulator_(workload_, seed) {
        rules_ = simulated_contract(workload_).invariants;
        for (int i = 0; i < 3; ++i) runs_.push_back(run(reference(), workload_.job.updates));
    }

    [[nodiscard]] const sim::Workload& workload() const { return workload_; }
    [[nodiscard]] sim::Candidate reference() const { return sim::reference_candidate(workload_); }
    [[nodiscard]] const InvariantRules& rules() const { return rules_; }

    Receipt run(const sim::Candidate& candidate, int updates) {
        sim::Request request;
        request.candidate = candidate;
        request.updates = updates;
        return simulated_receipt(workload_, candidate, simulator_.answer(request));
    }

    [[nodiscard]] Verdict judge(const Receipt& receipt) const {
        std::vector<Receipt> cut;
        for (const Receipt& run : runs_) cut.push_back(first_updates(run, receipt.updates));
        return infrarsi::judge(receipt, {cut[0], {cut[1], cut[2]}, estimate_noise(runs_)}, rules_);
    }
    Verdict judge(const sim::Candidate& candidate, int updates) { return judge(run(candidate, updates)); }

private:
    sim::Workload workload_;
    sim::Simulator simulator_;
    InvariantRules rules_;
    std::vector<Receipt> runs_;
};

std::string describe(const sim::Workload& workload, const sim::Candidate& candidate, const Verdict& verdict) {
    return workload.name + " " + sim::candidate_key(workload, candidate) + ": " + verdict.reason;
}

// Whether the first n updates show the breach at all.
bool shows_by(const sim::Breach& breach, int n) {
    return std::any_of(breach.changes.begin(), breach.changes.end(),
                       [n](const sim::EvidenceChange& change) { return change.from_update <= n; });
}

// Each single value and each single patch.
std::vector<sim::Candidate> single_changes(const sim::Workload& workload) {
    std::vector<sim::Candidate> found;
    for (const sim::Atom& atom : sim::list_atoms(workload)) {
        sim::Candidate candidate = sim::reference_candidate(workload);
        if (atom.patch) candidate.add_patch(*atom.patch);
        if (atom.setting) candidate.values[static_cast<std::size_t>(atom.setting->knob)] = atom.setting->value;
        found.push_back(candidate);
    }
    return found;
}

sim::Candidate random_candidate(const sim::Workload& workload, sim::RandomStream& luck) {
    sim::Candidate candidate = sim::reference_candidate(workload);
    for (std::size_t k = 0; k < workload.knobs.size(); ++k) {
        const auto count = static_cast<double>(workload.knobs[k].values.size());
        if (luck.uniform() < 0.4) candidate.values[k] = static_cast<int>(luck.uniform() * count);
    }
    for (std::size_t i = 0; i < workload.patches.size(); ++i) {
        if (luck.uniform() < 0.3) candidate.add_patch(static_cast<int>(i));
    }
    return candidate;
}

// The verdict that the candidate's kind asks for. True when it was one of the kinds whose verdict is certain.
void check_verdict(Bench& bench, const sim::Candidate& candidate, int updates) {
    const sim::Truth truth = sim::truth(bench.workload(), candidate);
    const Verdict verdict = bench.judge(candidate, updates);
    INFO(describe(bench.workload(), candidate, verdict));
    switch (truth.kind) {
        case sim::Kind::ok: CHECK(verdict.valid); break;
        case sim::Kind::oom:
        case sim::Kind::crash:
        case sim::Kind::hang:
            CHECK(verdict.rejecting(bench.rules()).front() == InvariantId::completes);
            CHECK(verdict[InvariantId::completes].status == Status::fail);
            break;
        default: break;
    }
    if (truth.outcome != sim::Outcome::completed) return;
    for (const sim::BreachCause& cause : sim::breaches(bench.workload(), candidate)) {
        if (!shows_by(*cause.breach, updates)) continue;
        CHECK_FALSE(verdict.valid);
        const auto id = invariant_from_string(cause.breach->invariant);
        REQUIRE(id);
        CHECK(verdict[*id].status == Status::fail);
    }
}

}  // namespace

TEST_CASE("the verifier tells simulated hacks from honest candidates by their receipts", "[trial][simulate]") {
    for (const std::string& name : sample::workload_names()) {
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
            Bench bench(name, seed);
            const sim::Workload& workload = bench.workload();
            for (int repeat = 0; repeat < 3; ++repeat) check_verdict(bench, bench.reference(), workload.job.updates);
            for (const sim::Candidate& candidate : single_changes(workload)) {
                check_verdict(bench, candidate, workload.job.updates);
                check_verdict(bench, candidate, 16);
            }
            check_verdict(bench, sim::find_optimum(workload, sim::Levers::knobs_and_patches)->candidate,
                          workload.job.updates);
            sim::RandomStream luck({"receipt test", name, std::to_string(seed)});
            for (int i = 0; i < 40; ++i) check_verdict(bench, random_candidate(workload, luck), 12 + i % 19);
        }
    }
}

TEST_CASE("a hack or an illegal value is caught beside honest changes too", "[trial][simulate]") {
    for (const std::string& name : sample::workload_names()) {
        Bench bench(name, 7);
        const sim::Workload& workload = bench.workload();
        const auto best = sim::find_optimum(workload, sim::Levers::knobs_and_patches)->candidate;
        int hacks = 0;
        for (std::size_t i = 0; i < workload.patches.size(); ++i) {
            if (!workload.patches[i].is_hack) continue;
            sim::Candidate candidate = best;
            candidate.add_patch(static_cast<int>(i));
            ++hacks;
            check_verdict(bench, candidate, workload.job.updates);
        }
        CHECK(hacks == 2);
    }
}

TEST_CASE("a run that diverges is rejected", "[trial][simulate]") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        Bench bench("w1-dense-9b-8xh100", seed, {"conflicts.0.kind=numeric", "conflicts.0.text="});
        const auto candidate = sample::candidate(bench.workload(), {{"compile", true}, {"recompute", "selective"}});
        REQUIRE(sim::truth(bench.workload(), candidate).outcome == sim::Outcome::numeric);
        const Verdict verdict = bench.judge(candidate, 30);
        CHECK_FALSE(verdict.valid);
        CHECK(verdict[InvariantId::completes].status == Status::pass);
        CHECK(verdict[InvariantId::no_errors].status == Status::fail);
        // A shorter run shows it only from where it begins.
        const Receipt receipt = bench.run(candidate, 12);
        const bool shows = *receipt.series.back().loss > 1.5 * *bench.run(bench.reference(), 12).series.back().loss ||
                           std::isnan(*receipt.series.back().loss);
        CHECK(bench.judge(receipt).valid != shows);
    }
}

TEST_CASE("a failed run says what failed", "[trial][simulate]") {
    Bench bench("w1-dense-9b-8xh100", 0);
    const auto run = [&](const nlohmann::json& settings) {
        return bench.run(sample::candidate(bench.workload(), settings), 30);
    };
    const Receipt full = run({{"recompute", "none"}, {"micro_batch", 2}});
    REQUIRE(full.oom);
    CHECK(full.oom->need_gib > 79);
    CHECK(full.oom->need_gib <= 100.02);  // what it truly needs
    CHECK(full.failures.front().failure_class == "oom_device");
    CHECK(full.execution.exit_code == 1);
    CHECK(full.series.empty());
    const Receipt crash = run({{"compile", true}, {"recompute", "selective"}});
    REQUIRE_FALSE(crash.failures.empty());
    CHECK(crash.failures.front().failure_class == "compile");
    CHECK_FALSE(bench.judge(crash).valid);

    Bench moe("w2-moe-26b-8xh200", 0);
    bool hung = false;
    for (const sim::Conflict& conflict : moe.workload().conflicts) {
        if (conflict.kind != sim::Conflict::Kind::hang) continue;
        sim::Candidate candidate = moe.reference();
        for (const sim::Setting& setting : conflict.when) {
            candidate.values[static_cast<std::size_t>(setting.knob)] = setting.value;
        }
        const Receipt receipt = moe.run(candidate, 30);
        CHECK(receipt.execution.signal == 9);
        CHECK(receipt.execution.timed_out == "wall");
        CHECK(moe.judge(receipt)[InvariantId::completes].evidence == "timed out (wall) after 0 of 30 updates");
        hung = true;
    }
    CHECK(hung);
}

TEST_CASE("a simulated receipt can be signed, and times in it are the answer's", "[trial][simulate]") {
    Bench bench("w4-moe-35b-16xh100", 3);
    const Receipt receipt = bench.run(bench.reference(), 30);
    sim::Simulator simulator(bench.workload(), 3);
    sim::Request request;
    request.candidate = bench.reference();
    request.index = request.repeat = 3;
    const sim::Answer answer = simulator.answer(request);
    for (std::size_t i = 1; i < answer.step_times_s.size(); ++i) {
        CHECK(receipt.series[i].t_s - receipt.series[i - 1].t_s == Approx(answer.step_times_s[i]).epsilon(1e-9));
    }
    const auto opened = open_receipt(sign_receipt(receipt, "key"), "key", "receipt");
    REQUIRE(opened);
    CHECK(to_json(*opened) == to_json(receipt));
}

TEST_CASE("a contract of a simulated job offers what is legal", "[trial][simulate]") {
    const auto workload = sample::workload("w1-dense-9b-8xh100");
    const Contract contract = simulated_contract(workload);
    REQUIRE(contract.knob("precision"));
    CHECK(contract.knob("precision")->values == std::vector<Value>{std::string("bf16")});
    CHECK(contract.knob("micro_batch")->spelling == "--micro-batch");
    CHECK(contract.knob("micro_batch")->mechanism == "batch.micro_batch");
    CHECK(contract.reference_settings()["recompute"] == Value(std::string("full")));
    CHECK(contract.invariants.precision_menu == std::vector<std::string>{"bf16", "fp32"});
    CHECK(contract.invariants.memory_cap_gib == 79);
    CHECK(contract.launch.gpus_per_node == 8);

    const auto one = sample::candidate(workload, nlohmann::json::object(), {"fused_rope"});
    const auto other = sample::candidate(workload, nlohmann::json::object(), {"async_h2d"});
    CHECK(simulated_candidate(workload, one).signature() != simulated_candidate(workload, other).signature());
    CHECK(simulated_candidate(workload, one).describe() == "reference + patch fused_rope");
}

TEST_CASE("the first updates of a receipt are what a shorter run would have shown", "[trial]") {
    Bench bench("w2-moe-26b-8xh200", 1);
    Receipt full = bench.run(bench.reference(), 30);
    full.failures = {{"collective", "late", "stderr", 1, full.series.back().t_s + 1}};
    full.disturbed = {3, 20};
    const Receipt cut = first_updates(full, 12);
    CHECK(cut.updates == 12);
    CHECK(cut.series.size() == 12);
    CHECK(cut.disturbed == std::vector<int>{3});
    CHECK(cut.failures.empty());
    CHECK(cut.execution.stopped == "after_updates");
    CHECK(cut.execution.duration_s == cut.series.back().t_s);
    CHECK(cut.model_digest == full.model_digest);
    CHECK(bench.judge(cut).valid);
    CHECK(to_json(first_updates(full, 30)) == to_json(full));

    Receipt crashed = full;
    crashed.series.resize(5);
    crashed.execution.exit_code = 1;
    CHECK(first_updates(crashed, 12).execution.exit_code == 1);
    CHECK_FALSE(bench.judge(first_updates(crashed, 12)).valid);
    CHECK(bench.judge(first_updates(crashed, 5)).valid);

    CHECK(bench.judge(bench.reference(), 2).valid);
    const Verdict single = bench.judge(bench.reference(), 1);
    CHECK(single.rejecting(bench.rules()) == std::vector{InvariantId::timing_consistent});
    CHECK(single[InvariantId::timing_consistent].status == Status::unchecked);
}
