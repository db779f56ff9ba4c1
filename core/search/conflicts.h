#pragma once
// Who is to blame for a run that failed for another reason than memory. Suspects are the single settings, pairs and
// triples of a failed candidate that no passing run contains; a pass clears all that it contains, a failure multiplies
// the odds of its suspects (notes on statistics §12). Each setting stays eligible in other combinations.

#include <array>
#include <map>
#include <set>
#include <vector>

namespace infrarsi {

// The items of a candidate: indices of its settings and patches in the feature space, sorted. Settings that only follow
// from another (the second batch knob) are left out by the caller, or every pair would have a shadow.
using Items = std::vector<int>;

class Conflicts {
public:
    // All passes first, then all failures in order: a pass is certain, whenever it came. `patches` are the items that
    // are patches; new code is blamed before the launch configuration (paper §4.2).
    Conflicts(std::vector<Items> passes, const std::vector<Items>& failures, std::set<int> patches);

    // P(no conflict among these items). Singles and pairs that were never tried count with their small prior, triples
    // only once they were in a failure.
    [[nodiscard]] double p_passes(const Items& items) const;
    // The first contained tuple whose blame is above 0.9; empty when there is none.
    [[nodiscard]] Items banned(const Items& items) const;
    // Blame of one tuple of one to three sorted items, 0 when cleared.
    [[nodiscard]] double blame(const Items& tuple) const;

private:
    [[nodiscard]] bool is_cleared(const Items& tuple) const;
    [[nodiscard]] double prior_of(const Items& tuple) const;

    std::vector<Items> passes_;
    std::set<int> patches_;
    std::set<std::array<int, 2>> cleared_;  // singles as {item, item}
    std::map<Items, double> blames_;        // of tuples that were in a failure
};

}  // namespace infrarsi
