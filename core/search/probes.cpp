// One change at a time on the incumbent: ordinary probes, contrarian probes, and the user's own patches.

#include "core/search/operators.h"

namespace infrarsi {

namespace {

// Below this chance a memory saver is looked for before the probe is paid.
constexpr double kLowChance = 0.5;
// Of the gate: what chance × upside must be worth, so that a hopeless candidate does not keep the search alive.
constexpr double kLeastWorth = 0.1;

struct Probe {
    Candidate candidate;
    Estimate estimate;
    std::string what;    // "threads=2", "patch \"fused AdamW\""
    std::string repair;  // what had to be done for it
    bool is_measured = false;
    bool is_rated_low = false;  // before any saver
};

void finish(const Situation& situation, Probe probe, std::vector<Probe>& probes) {
    const Beliefs& beliefs = situation.beliefs;
    if (beliefs.is_visited(probe.candidate)) return;
    const double gate = beliefs.problem().gate;
    if (probe.estimate.upside() <= gate) return;
    if (probe.estimate.upside() * probe.estimate.p_good() < kLeastWorth * gate) return;
    probes.push_back(std::move(probe));
}

void add_setting_probes(const Situation& situation, std::vector<Probe>& probes) {
    const Beliefs& beliefs = situation.beliefs;
    for (const Move& move : situation.moves.all()) {
        auto made = situation.moves.fit_in(beliefs.incumbent(), move);
        if (!made) continue;
        Probe probe{.candidate = std::move(made->candidate),
                    .what = move.knob->name + "=" + to_text(move.value),
                    .repair = std::move(made->repair)};
        probe.estimate = beliefs.estimate(probe.candidate);
        probe.is_measured = beliefs.is_measured(move.knob->name, move.value);
        probe.is_rated_low = probe.estimate.delta <= 0 || probe.estimate.p_fits < kLowChance;
        if (probe.estimate.p_fits < kLowChance) {
            if (auto saved = situation.moves.with_savers(probe.candidate, move.knob->name)) {
                probe.candidate = std::move(saved->candidate);
                probe.repair += (probe.repair.empty() ? "" : ", ") + saved->repair;
                probe.estimate = beliefs.estimate(probe.candidate);
            }
        }
        finish(situation, std::move(probe), probes);
    }
}

void add_patch_probes(const Situation& situation, std::vector<Probe>& probes) {
    const Beliefs& beliefs = situation.beliefs;
    for (const Patch& patch : situation.offered) {
        if (beliefs.is_tried(patch)) continue;
        const auto candidate = situation.moves.with_patch(beliefs.incumbent(), patch);
        if (!candidate) continue;
        Probe probe{.candidate = *candidate, .what = fmt::format("patch \"{}\" ({})", patch.title, patch.origin)};
        probe.estimate = beliefs.estimate(*candidate);
        probe.is_rated_low = probe.estimate.delta <= 0;
        finish(situation, std::move(probe), probes);
    }
}

std::vector<Probe> all_probes(const Situation& situation) {
    std::vector<Probe> probes;
    add_setting_probes(situation, probes);
    add_patch_probes(situation, probes);
    return probes;
}

Proposal proposal_of(const Probe& probe, const char* op, std::string_view verb, std::string_view note) {
    std::string reason = fmt::format(
        "{} {}{}{}: {} {} ± {:.0f} %", verb, probe.what, probe.repair.empty() ? "" : ", with ", probe.repair,
        probe.is_measured ? "model" : "prior", percent(probe.estimate.delta), 100 * probe.estimate.sd);
    reason += fmt::format(", fits with P={:.2f}", probe.estimate.p_fits);
    if (!note.empty()) reason += fmt::format("; {}", note);
    return {.candidate = probe.candidate,
            .op = op,
            .reason = std::move(reason),
            .expected_log_gain = probe.estimate.gain,
            .sigma = probe.estimate.sd,
            .p_fits = probe.estimate.p_fits};
}

// The best by `score`, the first of equals.
template <class Score>
const Probe* best_of(const std::vector<Probe>& probes, Score score) {
    const Probe* best = nullptr;
    double best_score = 0;
    for (const Probe& probe : probes) {
        const double value = score(probe);
        if (best != nullptr && value <= best_score) continue;
        best_score = value;
        best = &probe;
    }
    return best;
}

}  // namespace

std::optional<Proposal> user_patch(const Situation& situation) {
    const Beliefs& beliefs = situation.beliefs;
    int tried = 0;
    for (const Patch& patch : situation.offered) {
        if (is_user_patch(patch) && beliefs.is_tried(patch)) ++tried;
    }
    // Half of the budget at most: the rest of a long list competes with the settings.
    if (tried >= std::max(1, beliefs.problem().screens / 2)) return std::nullopt;
    for (const Patch& patch : situation.offered) {
        if (!is_user_patch(patch) || beliefs.is_tried(patch)) continue;
        const auto candidate = situation.moves.with_patch(beliefs.incumbent(), patch);
        if (!candidate || beliefs.is_visited(*candidate)) continue;
        const Probe probe{.candidate = *candidate,
                          .estimate = beliefs.estimate(*candidate),
                          .what = fmt::format("patch \"{}\"", patch.title)};
        return proposal_of(probe, "patch:user", "try", "you supplied it, so it goes first");
    }
    return std::nullopt;
}

std::optional<Proposal> probe(const Situation& situation) {
    const std::vector<Probe> probes = all_probes(situation);
    const Probe* best = best_of(probes, [](const Probe& probe) {
        const double optimistic = probe.estimate.delta + probe.estimate.sd;
        return optimistic > 0 ? optimistic * probe.estimate.p_good() : optimistic;
    });
    if (best == nullptr) return std::nullopt;
    return proposal_of(*best, "probe", "probe", "");
}

std::optional<Proposal> contrarian_probe(const Situation& situation) {
    std::vector<Probe> probes = all_probes(situation);
    std::erase_if(probes, [](const Probe& probe) { return !probe.is_rated_low || probe.is_measured; });
    const Probe* best =
        best_of(probes, [](const Probe& probe) { return probe.estimate.upside() * probe.estimate.p_good(); });
    if (best == nullptr) return std::nullopt;
    return proposal_of(*best, "probe:contrarian", "probe",
                       fmt::format("rated low, but {} is within two sigma", percent(best->estimate.upside())));
}

}  // namespace infrarsi
