#pragma once
// From one legal candidate to another: set a knob and repair what that breaks, attach a memory saver, draw at random.
// Every candidate that comes out is legal, conserves the batch and contains no banned tuple.

#include <optional>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/search/beliefs.h"

namespace infrarsi {

// One setting that may be made: a knob and any of its values, the reference among them.
struct Move {
    const Knob* knob = nullptr;
    Value value;
};

// A candidate with what had to be done for it, in words ("liger back to reference"); empty when nothing.
struct Repaired {
    Candidate candidate;
    std::string repair;
};

class Moves {
public:
    explicit Moves(const Beliefs& beliefs);

    // Every knob with every value, in the contract's order.
    [[nodiscard]] const std::vector<Move>& all() const { return all_; }

    // `from` with the move made and the batch conserved; nothing when that is illegal or banned.
    [[nodiscard]] std::optional<Candidate> apply(const Candidate& from, const Move& move) const;
    // As apply, but where a setting of `from` stands in the way (illegal, banned, or suspected of a conflict) it goes
    // back to the reference, at last all of them.
    [[nodiscard]] std::optional<Repaired> fit_in(const Candidate& from, const Move& move) const;
    // `from` with the patch as the last one; nothing when it is there or banned.
    [[nodiscard]] std::optional<Candidate> with_patch(const Candidate& from, const Patch& patch) const;

    // Up to two savers that raise what the candidate is worth, its chance times its upside; the knob `held` stays as it
    // is. The repair says what they save. Nothing when no saver helps.
    [[nodiscard]] std::optional<Repaired> with_savers(const Candidate& candidate, const std::string& held) const;

    // A uniform draw over the knobs, repaired to be legal and unvisited; of twenty such draws the first that fits with
    // P ≥ 0.5, else the likeliest. Nothing when no draw is legal.
    [[nodiscard]] std::optional<Candidate> random(Random& random) const;

private:
    // As apply, with the knob `name` of `from` back at its reference.
    [[nodiscard]] std::optional<Candidate> without(const Candidate& from, const std::string& name,
                                                   const Move& move) const;
    [[nodiscard]] bool is_allowed(const Candidate& candidate) const;
    [[nodiscard]] bool is_legal(const Candidate& candidate) const;
    // The move, by itself, is believed to lower the candidate's memory.
    [[nodiscard]] bool saves(const Candidate& candidate, const Move& move) const;

    const Beliefs& beliefs_;
    std::vector<Move> all_;
    mutable std::map<Settings, bool> legality_;  // asked before; operators meet the same candidates again
};

}  // namespace infrarsi
