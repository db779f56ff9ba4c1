#include "core/verify/loss_power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/verify/invariants.h"

namespace infrarsi {
namespace {

struct Curve {
    std::vector<int> n;
    std::vector<double> loss;
};

Curve curve_of(const Receipt& receipt) {
    Curve curve;
    for (const auto& update : receipt.series) {
        if (update.loss && std::isfinite(*update.loss) && update.n <= receipt.updates) {
            curve.n.push_back(update.n);
            curve.loss.push_back(*update.loss);
        }
    }
    return curve;
}

// The curve without the noise of single batches: a running median of five, then no rise counts as learning undone.
std::vector<double> smoothed(const std::vector<double>& loss) {
    std::vector<double> result;
    for (std::size_t i = 0; i < loss.size(); ++i) {
        const auto from = i < 2 ? 0 : i - 2, to = std::min(loss.size(), i + 3);
        std::vector<double> near(loss.begin() + static_cast<std::ptrdiff_t>(from),
                                 loss.begin() + static_cast<std::ptrdiff_t>(to));
        std::nth_element(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(near.size() / 2), near.end());
        result.push_back(near[near.size() / 2]);
    }
    return result;
}

// The loss that a model learning at half the speed has after update i: that of the reference after half as many.
double at_half(const std::vector<double>& curve, std::size_t i) {
    const double position = static_cast<double>(i) / 2;
    const auto low = static_cast<std::size_t>(position);
    const auto high = std::min(low + 1, curve.size() - 1);
    return curve[low] + (position - static_cast<double>(low)) * (curve[high] - curve[low]);
}

// Relative deviation as the rule holds it: of the window's means, or the largest of an update.
template <class Sabotaged>
double deviation_of(const Curve& curve, const std::vector<double>& smooth, const Receipt& receipt, bool per_update,
                    Sabotaged sabotaged) {
    double own = 0, reference = 0, largest = 0;
    int count = 0;
    for (std::size_t i = 0; i < smooth.size(); ++i) {
        const double loss = sabotaged(i);
        largest = std::max(largest, relative_deviation(loss, smooth[i]));
        if (curve.n[i] <= receipt.warmup) {
            continue;
        }
        own += loss;
        reference += smooth[i];
        ++count;
    }
    const double means = count > 0 ? relative_deviation(own / count, reference / count) : 0;
    return per_update ? std::max(largest, means) : means;
}

}  // namespace

LossPower loss_power(const ReferenceEvidence& reference, const InvariantRules& rules) {
    LossPower power;
    const auto& receipt = reference.reference;
    const auto curve = curve_of(receipt);
    if (curve.loss.size() < 2) {
        power.accepts_no_update = power.accepts_half_rate = true;
        power.tolerance = rules.tolerance;
        power.sentence = "No loss is known, so the loss rule cannot tell a job that learns from one that does not.";
        return power;
    }
    // The rule as it would apply to a complete candidate with the same data.
    const bool digests = std::all_of(receipt.series.begin(), receipt.series.end(),
                                     [](const UpdateRecord& update) { return !update.data.empty(); });
    const auto tolerance = loss_tolerance({receipt, reference, rules, digests});
    power.tolerance = tolerance.relative;
    const auto smooth = smoothed(curve.loss);
    const double no_update =
        deviation_of(curve, smooth, receipt, tolerance.per_update, [&](std::size_t) { return smooth.front(); });
    const double half_rate =
        deviation_of(curve, smooth, receipt, tolerance.per_update, [&](std::size_t i) { return at_half(smooth, i); });
    power.learned = deviation_of(curve, smooth, receipt, false, [&](std::size_t) { return smooth.front(); });
    power.accepts_no_update = no_update <= power.tolerance;
    power.accepts_half_rate = half_rate <= power.tolerance;
    const auto numbers = fmt::format(
        "the loss moves by {:.2g} % from the first update to the window, and the rule allows "
        "{:.2g} %",
        100 * power.learned, 100 * power.tolerance);
    if (power.accepts_no_update) {
        power.sentence = fmt::format(
            "The loss rule is decoration here: it would accept a model that never learns ({}). "
            "The state checksums carry the contract.",
            numbers);
    } else if (power.accepts_half_rate) {
        power.sentence = fmt::format(
            "The loss rule would reject a model that never learns, but accept one that learns at "
            "half the speed ({}). The state checksums carry the contract.",
            numbers);
    } else {
        power.sentence = fmt::format(
            "The loss rule has power here: it rejects no learning and learning at half the speed "
            "({}).",
            numbers);
    }
    return power;
}

}  // namespace infrarsi
