#pragma once
// Who is to blame for runs that failed for another reason than memory. Suspects are single settings and patches, and
// the pairs and triples of what a failed run contained; reference values count too, since a setting may only fail
// beside one of them (compile hangs while the fused loss of the reference is on). A pass clears all that it contains;
// what remains is weighed by iterating Bayes over all failures at once, so that the order of runs does not matter
// (notes on statistics §12). Failures of different kinds have different culprits, or one explanation would swallow them
// all. What shows while a job starts (crashes, hangs) is told from what shows in its numbers, which a short run may not
// reach. Each setting stays eligible in other combinations.

#include <string>
#include <vector>

#include "core/search/space.h"

namespace infrarsi {

// Prior chances that a tuple fails by itself.
struct BlameRules {
    double single = 0.002;
    double pair = 0.006;
    double pair_reference = 0.003;  // a setting beside a reference value
    double triple = 0.0002;
    double patch = 0.2;         // a patch by itself breaks the contract
    double patch_pair = 0.002;  // a patch with a setting or another patch
    double late_share = 0.4;    // of these chances, except a patch's: shows in the numbers only
    double other_kind = 0.5;    // P(a culprit stays hidden behind a failure of another kind)
    double short_misses = 0.4;  // P(a short run does not show what a full one would)
    double hidden = 0.3;        // P(no short run ever shows it), however many came through
};

// One run as evidence.
struct BlameTrial {
    enum class Stage { passed, early, late };  // late: it ran, but its numbers broke the contract
    const Point* point = nullptr;
    Stage stage = Stage::passed;
    int kind = 0;         // of a failure: equal for equal causes
    bool is_full = true;  // at full length
};

// What a point is made of, as numbers: a value of each axis, reference values too, and its patches. Sorted.
using Items = std::vector<int>;

class ItemTable {
public:
    explicit ItemTable(const Space& space);

    [[nodiscard]] Items of(const Point& point) const;
    [[nodiscard]] int count() const { return static_cast<int>(changed_.size()); }
    [[nodiscard]] bool is_changed(int item) const { return changed_[static_cast<std::size_t>(item)] != 0; }
    [[nodiscard]] bool is_patch(int item) const { return item >= first_patch_; }
    // "compile=true with liger=true".
    [[nodiscard]] std::string words(const Space& space, const Items& items) const;

private:
    std::vector<int> offsets_;   // per axis
    std::vector<char> changed_;  // per item: not a reference value
    int first_patch_ = 0;
};

struct Suspect {
    Items items;  // one to three
    double blame = 0;
};

class Blame {
public:
    // The points of `trials` are only read here.
    Blame(const Space& space, const std::vector<BlameTrial>& trials, const BlameRules& rules = {});

    // P(nothing in the point fails).
    [[nodiscard]] double p_passes(const Point& point) const;
    // P(its numbers hold at full length, given that it starts).
    [[nodiscard]] double p_holds(const Point& point) const;

    // Of what failed, most blamed first.
    [[nodiscard]] const std::vector<Suspect>& suspects() const { return suspects_; }
    // The most blamed suspect that the point contains, of at least `least`; nullptr: none.
    [[nodiscard]] const Suspect* worst_in(const Point& point, double least) const;
    [[nodiscard]] std::string words(const Suspect& suspect) const { return table_.words(space_, suspect.items); }

    // A failed run: somebody in it is guilty. For a candidate that leaves the guilty out that is no news; the more of
    // the suspects it contains, the likelier it fails too.
    struct Failure {
        std::vector<Suspect> suspects;  // blame: what is known of them without this failure
        double rest = 0;                // ln(1 − chance) of all the others, of little blame each
    };
    // ln(1 − prior) of each single (on the diagonal) and pair a ≤ b of items, row-major, 0 where cleared.
    struct Stage {
        std::vector<double> innocence;
        std::vector<Failure> failures;
    };

private:
    [[nodiscard]] double log_chance(const Stage& stage, const Items& items) const;

    const Space& space_;
    ItemTable table_;
    Stage early_, late_;
    std::vector<Suspect> suspects_;
};

}  // namespace infrarsi
