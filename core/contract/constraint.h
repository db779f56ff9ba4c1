#pragma once
// The constraint algebra over knobs: `micro_batch * grad_accum == 16`, `!(compile && recompute == "full")`.
// Grammar: || && ! comparisons (== != < <= > >=), + - * / %, parentheses, numbers, quoted or bare text,
// true/false/null, knob names, and `implies` (a implies b). Batch conservation (paper §3.2) is always on, beside what
// is written.

#include <memory>
#include <set>
#include <string>

#include "core/contract/contract.h"

namespace infrarsi {

class Constraint {
public:
    // invalid_input with the column in `text` where it stops making sense.
    [[nodiscard]] static Expected<Constraint> parse(std::string_view text);

    // True when `settings` (complete) satisfy it. invalid_input when it names a knob that settings lack, or compares
    // text with a number by order. A null operand makes an ordering or arithmetic comparison true (an unset knob is not
    // bound).
    [[nodiscard]] Expected<bool> holds(const Settings& settings) const;

    [[nodiscard]] const std::set<std::string>& names() const;
    [[nodiscard]] const std::string& text() const;

    struct Node;

private:
    std::shared_ptr<const Node> root_;
    std::set<std::string> names_;
    std::string text_;
};

// The legal set of a contract: its constraints and batch conservation.
class LegalSet {
public:
    [[nodiscard]] static Expected<LegalSet> of(const Contract& contract);

    // Nothing when legal, else the sentence that says which rule is broken and by which values.
    [[nodiscard]] std::optional<std::string> why_illegal(const Settings& complete) const;

    // The knobs that multiply to sequences per update (mechanisms micro_batch and grad_accum), and their product at the
    // reference. Empty when the job has no such pair; then none of these knobs may change (init drafts none alone).
    [[nodiscard]] const std::vector<std::string>& batch_knobs() const;
    [[nodiscard]] double batch_product() const;

    // Repairs `changes` by moving the other batch knob so that the product is kept; nothing when no legal value does
    // it.
    [[nodiscard]] std::optional<Settings> conserve_batch(const Contract& contract, const Settings& changes,
                                                         const std::string& held_knob) const;

private:
    std::vector<Constraint> constraints_;
    std::vector<std::string> batch_knobs_;
    double batch_product_ = 0;
};

}  // namespace infrarsi
