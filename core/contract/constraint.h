#pragma once
// The constraint algebra over knobs: `micro_batch * grad_accum == 16`, `!(compile && recompute == "full")`.
// Grammar: || && ! comparisons (== != < <= > >=), + - * / %, parentheses, numbers, quoted or bare text,
// true/false/null, knob names, and `implies` (a implies b). A bare word on the right of == or != is the knob of that
// name, or text when there is none; anywhere else a bare word is a knob. Batch conservation (paper §3.2) is always on,
// beside what is written.

#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/contract/contract.h"

namespace infrarsi {

class Constraint {
public:
    // invalid_input with the column in `text` where it stops making sense.
    [[nodiscard]] static Expected<Constraint> parse(std::string_view text);

    // True when `settings` (complete) satisfy it. invalid_input when it names a knob that settings lack, orders text,
    // takes text for true or false, or divides by zero. An unset knob is not bound: a comparison by order or arithmetic
    // with null is unknown, unknown runs through && || ! as in SQL, and a constraint that ends unknown holds. `knob ==
    // null` asks whether it is unset; a bare knob that is null counts as false.
    [[nodiscard]] Expected<bool> holds(const Settings& settings) const;

    // The knobs that it certainly names, and the bare words that are a knob or text with the knob compared with.
    struct Word {
        std::string word, compared_with;  // compared_with is empty when the left side is no single knob
        int column = 0;                   // 1-based, in text
    };
    [[nodiscard]] const std::set<std::string>& names() const { return names_; }
    [[nodiscard]] const std::vector<Word>& words() const { return words_; }
    [[nodiscard]] int column_of(const std::string& name) const;  // 1-based; 1 when it is not named
    [[nodiscard]] const std::string& text() const { return text_; }

    struct Node;

private:
    std::shared_ptr<const Node> root_;
    std::set<std::string> names_;
    std::map<std::string, int> columns_;
    std::vector<Word> words_;
    std::string text_;
};

// Stacks where the global batch is pinned and accumulation follows from micro batch and layout by itself (`free_moves`
// in data/mechanisms.yaml). Elsewhere it is pinned when the contract has a global-batch knob that is set.
[[nodiscard]] bool accumulation_follows(Stack stack);

// The legal set of a contract: its knobs' values, its constraints and batch conservation.
class LegalSet {
public:
    // invalid_input when a constraint does not parse.
    [[nodiscard]] static Expected<LegalSet> of(const Contract& contract);

    // Nothing when legal, else the sentence that says which rule is broken and by which values.
    [[nodiscard]] std::optional<std::string> why_illegal(const Settings& complete) const;

    // The knobs that multiply to sequences per update (mechanisms batch.micro_batch and batch.grad_accum), and their
    // product at the reference. Empty (and 0) when the job has no such pair: then a micro-batch or accumulation knob
    // alone may not change, except where accumulation follows by itself. Global-batch and sequence-length knobs never
    // may. Tensor, pipeline, context and sequence parallel degrees divide the product, where accumulation does not
    // follow.
    [[nodiscard]] const std::vector<std::string>& batch_knobs() const { return batch_knobs_; }
    [[nodiscard]] double batch_product() const { return batch_product_; }

    // Repairs `changes` by moving the other batch knob so that the product is kept; nothing when no legal value does
    // it. Written constraints are not looked at.
    [[nodiscard]] std::optional<Settings> conserve_batch(const Contract& contract, const Settings& changes,
                                                         const std::string& held_knob) const;

private:
    [[nodiscard]] std::optional<std::string> why_not_conserved(const Settings& complete) const;

    std::vector<Knob> knobs_;
    std::vector<Constraint> constraints_;
    std::vector<std::string> batch_knobs_;    // they multiply
    std::vector<std::string> divisor_knobs_;  // they divide the ranks among whom data is spread
    std::vector<std::string> immovable_knobs_;
    double batch_product_ = 0;
};

}  // namespace infrarsi
