#pragma once
// A small training job that exists only as formulas: additive log gains, a memory wall, a pair that crashes, noise.
// Truth is drawn from a seed around what the rules believe, often far from it.

#include "core/base/env.h"
#include "core/search/controller.h"

namespace infrarsi::search_test {

inline Value whole(std::int64_t number) {
    return Value{number};
}

inline Value text(const char* words) {
    return Value{std::string(words)};
}

inline Knob knob(std::string name, std::string mechanism, std::vector<Value> values, Value reference) {
    return {.name = std::move(name),
            .spelling = "--x",
            .values = std::move(values),
            .reference = std::move(reference),
            .mechanism = std::move(mechanism)};
}

class Landscape {
public:
    explicit Landscape(std::uint64_t seed) : random_(seed * 7919 + 13) {
        contract_.knobs = {
            knob("micro_batch", "micro_batch", {whole(1), whole(2), whole(4), whole(8)}, whole(1)),
            knob("grad_accum", "grad_accum", {whole(8), whole(4), whole(2), whole(1)}, whole(8)),
            knob("compile", "compile", {false, true}, false),
            knob("recompute", "activation_recompute", {text("none"), text("selective"), text("full")}, text("full")),
            knob("liger", "kernel.liger", {false, true}, false),
            knob("threads", "host.omp_threads", {Value{}, whole(2), whole(8)}, Value{}),
            knob("workers", "dataloader.workers", {whole(0), whole(4)}, whole(0)),
            knob("fused", "optim.fused", {false, true}, false),
            knob("unknown", "", {text("a"), text("b")}, text("a")),
        };
        draw_truth();
        legal_ = *LegalSet::of(contract_);
        problem_.contract = &contract_;
        problem_.legal = &legal_;
        problem_.reference_gib = 40;
        problem_.capacity_gib = 80;
        problem_.seed = seed;
        problem_.sigma_pair = kNoise;
    }
    Landscape(const Landscape&) = delete;

    static constexpr double kNoise = 0.008;

    [[nodiscard]] const Contract& contract() const { return contract_; }
    [[nodiscard]] const LegalSet& legal() const { return legal_; }
    [[nodiscard]] SearchProblem& problem() { return problem_; }

    [[nodiscard]] double gain(const Settings& changes) const { return sum(changes, gains_); }
    [[nodiscard]] double need_gib(const Settings& changes) const { return 40 + sum(changes, gibs_); }
    [[nodiscard]] bool crashes(const Settings& changes) const {
        return changes.contains("compile") && changes.contains("liger");
    }

    [[nodiscard]] Outcome run(int trial, const Candidate& candidate) {
        Outcome outcome{.trial = trial, .candidate = candidate};
        if (crashes(candidate.settings)) {
            outcome.kind = OutcomeKind::failed;
        } else if (need_gib(candidate.settings) > 80) {
            outcome.kind = OutcomeKind::oom;
            outcome.need_gib = 80 + 0.3 * (need_gib(candidate.settings) - 80);
        } else {
            outcome.kind = OutcomeKind::valid;
            outcome.log_speedup = gain(candidate.settings) + kNoise * random_.normal();
            outcome.sigma = kNoise;
            outcome.peak_gib = need_gib(candidate.settings) + 0.4 * random_.normal();
        }
        return outcome;
    }

    // The best true gain over all legal configurations that run.
    [[nodiscard]] double best() const {
        double best = 0;
        Settings changes;
        enumerate(0, changes, best);
        return best;
    }

private:
    using Effects = std::map<std::pair<std::string, std::string>, double>;

    void draw_truth() {
        const auto set = [&](const char* name, const char* value, double gain, double spread, double gib) {
            gains_[{name, value}] = gain + spread * random_.normal();
            gibs_[{name, value}] = gib * (0.7 + 0.6 * random_.uniform());
        };
        const double doubling = 0.08 + 0.06 * random_.normal();
        const double act = 5 + 4 * random_.uniform();
        for (const auto& [value, doublings] : {std::pair{"2", 1.0}, std::pair{"4", 1.8}, std::pair{"8", 2.3}}) {
            gains_[{"micro_batch", value}] = doubling * doublings;
            gibs_[{"micro_batch", value}] = act * (std::exp2(std::round(doublings + 0.4)) - 1);
        }
        set("compile", "true", 0.18, 0.15, 2);
        set("recompute", "none", 0.20, 0.06, 22);
        set("recompute", "selective", 0.10, 0.05, 9);
        set("liger", "true", 0.08, 0.08, -8);
        set("threads", "2", 0.0, 0.08, 0);
        set("threads", "8", 0.05, 0.12, 0);
        set("workers", "4", 0.03, 0.05, 0);
        set("fused", "true", 0.04, 0.03, 0);
        set("unknown", "b", 0.0, 0.10, 4);
    }

    [[nodiscard]] static double sum(const Settings& changes, const Effects& effects) {
        double total = 0;
        for (const auto& [name, value] : changes) {
            if (const auto found = effects.find({name, to_text(value)}); found != effects.end()) total += found->second;
        }
        return total;
    }

    void enumerate(std::size_t index, Settings& changes, double& best) const {
        if (index == contract_.knobs.size()) {
            if (!crashes(changes) && need_gib(changes) <= 80) best = std::max(best, gain(changes));
            return;
        }
        const Knob& knob = contract_.knobs[index];
        if (knob.name == "grad_accum") return enumerate(index + 1, changes, best);
        for (const Value& value : knob.values) {
            if (!same_effect(value, knob.reference)) changes[knob.name] = value;
            enumerate(index + 1, changes, best);
            changes.erase(knob.name);
        }
    }

    Random random_;
    Contract contract_;
    LegalSet legal_;
    SearchProblem problem_;
    Effects gains_, gibs_;
};

}  // namespace infrarsi::search_test
