#include "core/search/conflicts.h"

#include <algorithm>
#include <cmath>

namespace infrarsi {

namespace {

// Prior chance that a tuple of one, two or three items fails by itself.
constexpr std::array<double, 3> kPrior{0.02, 0.008, 0.001};
constexpr double kPatchPrior = 0.3;
constexpr double kBan = 0.9;
constexpr double kMostBlame = 0.999;

bool contains(const Items& items, const Items& tuple) {
    return std::includes(items.begin(), items.end(), tuple.begin(), tuple.end());
}

// Calls `visit` for every tuple of one to three items.
template <class Visit>
void for_each_tuple(const Items& items, Visit visit) {
    for (std::size_t a = 0; a < items.size(); ++a) {
        visit(Items{items[a]});
        for (std::size_t b = a + 1; b < items.size(); ++b) {
            visit(Items{items[a], items[b]});
            for (std::size_t c = b + 1; c < items.size(); ++c) visit(Items{items[a], items[b], items[c]});
        }
    }
}

}  // namespace

Conflicts::Conflicts(std::vector<Items> passes, const std::vector<Items>& failures, std::set<int> patches)
    : passes_(std::move(passes)), patches_(std::move(patches)) {
    for (const Items& passed : passes_) {
        for (std::size_t a = 0; a < passed.size(); ++a) {
            for (std::size_t b = a; b < passed.size(); ++b) cleared_.insert({passed[a], passed[b]});
        }
    }
    for (const Items& failed : failures) {
        std::map<Items, double> suspects;
        double log_innocent = 0;
        for_each_tuple(failed, [&](const Items& tuple) {
            const double suspicion = blame(tuple);
            if (suspicion == 0) return;
            suspects[tuple] = suspicion;
            log_innocent += std::log1p(-suspicion);
        });
        // At least one of them holds, given that the run failed.
        const double any = -std::expm1(log_innocent);
        for (const auto& [tuple, suspicion] : suspects) blames_[tuple] = std::min(suspicion / any, kMostBlame);
    }
}

double Conflicts::prior_of(const Items& tuple) const {
    if (tuple.size() == 1 && patches_.contains(tuple.front())) return kPatchPrior;
    return kPrior[tuple.size() - 1];
}

bool Conflicts::is_cleared(const Items& tuple) const {
    if (tuple.size() < 3) return cleared_.contains({tuple.front(), tuple.back()});
    return std::any_of(passes_.begin(), passes_.end(), [&](const Items& passed) { return contains(passed, tuple); });
}

double Conflicts::blame(const Items& tuple) const {
    if (is_cleared(tuple)) return 0;
    const auto known = blames_.find(tuple);
    return known == blames_.end() ? prior_of(tuple) : known->second;
}

double Conflicts::p_passes(const Items& items) const {
    double log_innocent = 0;
    for (std::size_t a = 0; a < items.size(); ++a) {
        log_innocent += std::log1p(-blame({items[a]}));
        for (std::size_t b = a + 1; b < items.size(); ++b) log_innocent += std::log1p(-blame({items[a], items[b]}));
    }
    for (const auto& [tuple, blame] : blames_) {
        if (tuple.size() == 3 && contains(items, tuple)) log_innocent += std::log1p(-blame);
    }
    return std::exp(log_innocent);
}

Items Conflicts::banned(const Items& items) const {
    for (const auto& [tuple, blame] : blames_) {
        if (blame >= kBan && contains(items, tuple)) return tuple;
    }
    return {};
}

}  // namespace infrarsi
