#include "core/search/moves.h"

#include <algorithm>

namespace infrarsi {

namespace {

constexpr int kRandomTries = 300;
constexpr int kRandomDraws = 20;
constexpr double kTrusted = 0.8;      // P(no conflict), under which a suspect is looked for
constexpr double kRevertHelps = 1.1;  // what giving up a setting must add
constexpr int kMostSavers = 2;
constexpr double kLeastSaving = 0.01;  // of the capacity
constexpr double kSureSaver = 0.5;     // sd; a saver must be believed to save
constexpr double kSaverHelps = 1.1;    // a saver that adds less than a tenth is not worth one more change

bool is_batch_knob(const LegalSet* legal, const std::string& name) {
    if (legal == nullptr) return false;
    const std::vector<std::string>& knobs = legal->batch_knobs();
    return std::find(knobs.begin(), knobs.end(), name) != knobs.end();
}

}  // namespace

Moves::Moves(const Beliefs& beliefs) : beliefs_(beliefs) {
    for (const Knob& knob : beliefs.contract().knobs) {
        for (const Value& value : knob.values) all_.push_back({&knob, value});
    }
}

bool Moves::is_allowed(const Candidate& candidate) const {
    return is_legal(candidate) && beliefs_.conflicts().banned(beliefs_.items(candidate)).empty();
}

bool Moves::is_legal(const Candidate& candidate) const {
    const LegalSet* legal = beliefs_.problem().legal;
    if (legal == nullptr) return true;
    const auto [known, is_new] = legality_.try_emplace(candidate.settings, true);
    if (is_new) known->second = !legal->why_illegal(beliefs_.contract().complete(candidate.settings));
    return known->second;
}

std::optional<Candidate> Moves::apply(const Candidate& from, const Move& move) const {
    Candidate candidate = from;
    candidate.settings[move.knob->name] = move.value;
    const LegalSet* legal = beliefs_.problem().legal;
    if (is_batch_knob(legal, move.knob->name)) {
        auto conserved = legal->conserve_batch(beliefs_.contract(), candidate.settings, move.knob->name);
        if (!conserved) return std::nullopt;
        candidate.settings = std::move(*conserved);
    }
    candidate = beliefs_.space().canonical(candidate);
    if (legal != nullptr && !legal->batch_knobs().empty() && !is_legal(candidate)) {
        // Another knob may divide the batch too (a parallel degree does).
        auto conserved = legal->conserve_batch(beliefs_.contract(), candidate.settings, move.knob->name);
        if (conserved) candidate.settings = std::move(*conserved);
        candidate = beliefs_.space().canonical(candidate);
    }
    if (!is_allowed(candidate)) return std::nullopt;
    return candidate;
}

std::optional<Candidate> Moves::without(const Candidate& from, const std::string& name, const Move& move) const {
    Candidate less = from;
    less.settings.erase(name);
    if (is_batch_knob(beliefs_.problem().legal, name)) {
        for (const std::string& batch : beliefs_.problem().legal->batch_knobs()) less.settings.erase(batch);
    }
    return apply(less, move);
}

std::optional<Repaired> Moves::fit_in(const Candidate& from, const Move& move) const {
    const auto worth = [&](const Candidate& candidate) {
        const Estimate estimate = beliefs_.estimate(candidate);
        return estimate.p_passes * (estimate.delta + 2 * estimate.sd);
    };
    std::optional<Repaired> best;
    double best_worth = 0;
    if (auto direct = apply(from, move)) {
        if (beliefs_.estimate(*direct).p_passes >= kTrusted) return Repaired{std::move(*direct), ""};
        best_worth = kRevertHelps * worth(*direct);
        best = Repaired{std::move(*direct), ""};
    }
    for (const auto& [name, value] : from.settings) {
        if (beliefs_.contract().knob(name) == nullptr || name == move.knob->name) continue;
        auto reverted = without(from, name, move);
        if (!reverted || beliefs_.is_visited(*reverted)) continue;
        const double reverted_worth = worth(*reverted);
        if (best && reverted_worth <= best_worth) continue;
        best_worth = reverted_worth;
        best = Repaired{std::move(*reverted), name + " back to reference"};
    }
    if (best) return best;
    if (auto alone = apply({}, move); alone && !from.is_reference()) {
        return Repaired{std::move(*alone), "all else at the reference"};
    }
    return std::nullopt;
}

std::optional<Candidate> Moves::with_patch(const Candidate& from, const Patch& patch) const {
    Candidate candidate = from;
    candidate.patches.push_back(patch);
    candidate = beliefs_.space().canonical(candidate);
    if (candidate.patches.size() == from.patches.size() || !is_allowed(candidate)) return std::nullopt;
    return candidate;
}

bool Moves::saves(const Candidate& candidate, const Move& move) const {
    Candidate before;
    if (const auto set = candidate.settings.find(move.knob->name); set != candidate.settings.end()) {
        before.settings.insert(*set);
    }
    Candidate after;
    if (!same_effect(move.value, move.knob->reference)) after.settings[move.knob->name] = move.value;
    const Gib change = beliefs_.memory_change(before, after);
    return -change.mean >= std::max(kLeastSaving * beliefs_.problem().capacity_gib, kSureSaver * change.sd);
}

std::optional<Repaired> Moves::with_savers(const Candidate& candidate, const std::string& held) const {
    const auto worth = [](const Estimate& estimate) {
        return estimate.p_good() * std::max(estimate.delta + estimate.sd, 0.0);
    };
    Repaired result{candidate, ""};
    double value = worth(beliefs_.estimate(candidate));
    std::set<std::string> fixed{held};
    for (int round = 0; round < kMostSavers; ++round) {
        std::optional<Candidate> best;
        const Move* saver = nullptr;
        double best_value = value * kSaverHelps;
        for (const Move& move : all_) {
            if (fixed.contains(move.knob->name) || !saves(result.candidate, move)) continue;
            const auto saved = apply(result.candidate, move);
            if (!saved || beliefs_.is_visited(*saved)) continue;
            // The held setting must survive the repair of the batch.
            const auto before = candidate.settings.find(held);
            const auto after = saved->settings.find(held);
            if ((before == candidate.settings.end()) != (after == saved->settings.end())) continue;
            if (before != candidate.settings.end() && !same_effect(before->second, after->second)) continue;
            const double with = worth(beliefs_.estimate(*saved));
            if (with <= best_value) continue;
            best_value = with;
            best = saved;
            saver = &move;
        }
        if (!best) break;
        const Gib change = beliefs_.memory_change(result.candidate, *best);
        result.repair += fmt::format("{}{}={} to save {:.1f} ± {:.1f} GiB", result.repair.empty() ? "" : ", ",
                                     saver->knob->name, to_text(saver->value), -change.mean, change.sd);
        result.candidate = std::move(*best);
        value = best_value;
        fixed.insert(saver->knob->name);
    }
    if (result.repair.empty()) return std::nullopt;
    return result;
}

std::optional<Candidate> Moves::random(Random& random) const {
    const Contract& contract = beliefs_.contract();
    const LegalSet* legal = beliefs_.problem().legal;
    std::optional<Candidate> likeliest;
    double best = -1;
    int draws = 0;
    for (int attempt = 0; attempt < kRandomTries && draws < kRandomDraws; ++attempt) {
        Candidate candidate;
        std::string held;
        for (const Knob& knob : contract.knobs) {
            if (knob.values.empty()) continue;
            const Value& value = knob.values[random.below(knob.values.size())];
            if (!is_batch_knob(legal, knob.name)) {
                candidate.settings[knob.name] = value;
            } else if (held.empty()) {
                held = knob.name;
                candidate.settings[knob.name] = value;
            }
        }
        if (!held.empty()) {
            auto conserved = legal->conserve_batch(contract, candidate.settings, held);
            if (!conserved) continue;
            candidate.settings = std::move(*conserved);
        }
        candidate = beliefs_.space().canonical(candidate);
        if (!is_allowed(candidate) || beliefs_.is_visited(candidate)) continue;
        ++draws;
        const double p_fits = beliefs_.estimate(candidate).p_fits;
        if (p_fits >= 0.5) return candidate;
        if (p_fits <= best) continue;
        best = p_fits;
        likeliest = candidate;
    }
    return likeliest;
}

}  // namespace infrarsi
