#include "core/verify/state_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace infrarsi {
namespace {

using Projections = std::map<std::string, double>;
using Member = Projections StateProbe::*;

struct Kind {
    Member member;
    std::string_view name;
};
constexpr Kind kKinds[] = {{&StateProbe::params, "parameters"},
                           {&StateProbe::optimizer, "optimizer state"},
                           {&StateProbe::buffers, "buffers"}};

const StateProbe* probe_at(const Receipt& receipt, int n) {
    const auto it = std::find_if(receipt.probes.begin(), receipt.probes.end(),
                                 [&](const StateProbe& probe) { return probe.n == n; });
    return it == receipt.probes.end() ? nullptr : &*it;
}

struct Pair {
    const StateProbe* before;
    const StateProbe* after;
};

std::vector<Pair> pairs_of(const Receipt& reference) {
    std::vector<Pair> pairs;
    for (const auto& probe : reference.probes) {
        if (const auto* before = probe_at(reference, probe.n - 1)) {
            pairs.push_back({before, &probe});
        }
    }
    return pairs;
}

bool same_or_both_odd(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

// A tensor that the reference did not change in this pair has no update to measure by: it must be the same, up to what
// rounding does to a sum.
bool still_same(double candidate, double reference) {
    return same_or_both_odd(candidate, reference) ||
           std::abs(candidate - reference) <= 1e-3 * std::max(1.0, std::abs(reference));
}

struct Tensors {
    std::vector<double> ratios;  // |d|/|δ|, of tensors that the reference changed
    double typical = 0;          // their median
    double lag_sum = 0, lag_weight = 0;
    // How far each changed tensor is from the reference's state of the update before, in updates.
    std::vector<std::pair<const std::string*, double>> behind;
    std::set<std::string> late, stale;  // names
    std::string odd;                    // a tensor that must not differ and does
};

void measure(const std::string& name, double now, const double* before, double ref_now, double ref_before,
             Tensors& tensors) {
    const double update = ref_now - ref_before;
    if (!std::isfinite(ref_now) || !std::isfinite(ref_before) || update == 0) {
        const bool fine = std::isfinite(ref_now) ? still_same(now, ref_now) : same_or_both_odd(now, ref_now);
        if (!fine && tensors.odd.empty()) {
            tensors.odd = fmt::format("{} is {:.6g}, the reference's {:.6g} does not change", name, now, ref_now);
        }
        return;
    }
    const double deviation = std::isfinite(now) ? now - ref_now : HUGE_VAL;
    tensors.ratios.push_back(std::abs(deviation / update));
    const double weight = std::isfinite(deviation) ? update * update / (deviation * deviation + update * update) : 0;
    tensors.lag_weight += weight;
    if (std::isfinite(deviation)) {
        tensors.lag_sum += weight * (-deviation / update);
    }
    tensors.behind.emplace_back(&name, std::abs((now - ref_before) / update));
    if (before != nullptr && now == *before) {
        tensors.stale.insert(name);
    }
}

double quantile(std::vector<double> values, double share) {
    if (values.empty()) {
        return 0;
    }
    const auto at = std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at];
}

// The tensors that hold the state of one update ago. The tolerance follows the deviation of the others; an honest
// tensor of pure rounding noise lands inside it with a chance of half a percent a pair. Where all tensors deviate by
// more than kMostTypical, chance would be too great among hundreds of them, and the pair says nothing.
constexpr double kMostTypical = 0.03;

void find_late(double typical, Tensors& tensors) {
    if (typical > kMostTypical) {
        return;
    }
    const double tolerance = std::max(3 * typical, 0.01);
    for (const auto& [name, distance] : tensors.behind) {
        if (distance <= tolerance) {
            tensors.late.insert(*name);
        }
    }
}

// Looks names up in ascending order: the maps of two probes hold the same names, so each step is one comparison.
class InStep {
public:
    explicit InStep(const Projections* values) : values_(values) {
        if (values_ != nullptr) {
            at_ = values_->begin();
        }
    }
    const double* find(const std::string& name) {
        while (values_ != nullptr && at_ != values_->end()) {
            const int order = at_->first.compare(name);
            if (order == 0) {
                return &at_->second;
            }
            if (order > 0) {
                break;
            }
            ++at_;
        }
        return nullptr;
    }

private:
    const Projections* values_;
    Projections::const_iterator at_;
};

// One kind of state at one pair. Nothing when the candidate lacks a tensor; `missing` names it.
std::optional<Tensors> compare(const StateProbe& now, const StateProbe* before, const Pair& pair, Member member,
                               std::string& missing) {
    Tensors tensors;
    InStep reference(&(pair.before->*member)), candidate(&(now.*member));
    InStep earlier(before == nullptr ? nullptr : &(before->*member));
    tensors.ratios.reserve((pair.after->*member).size());
    tensors.behind.reserve((pair.after->*member).size());
    for (const auto& [name, ref_now] : pair.after->*member) {
        const auto* ref_before = reference.find(name);
        if (ref_before == nullptr) {
            continue;
        }
        const auto* held = candidate.find(name);
        if (held == nullptr) {
            missing = name;
            return std::nullopt;
        }
        measure(name, *held, earlier.find(name), ref_now, *ref_before, tensors);
    }
    tensors.typical = quantile(tensors.ratios, 0.5);
    return tensors;
}

bool low_precision(const Receipt& reference) {
    const auto is_low = [](const std::string& dtype) {
        return dtype.find("16") != std::string::npos || dtype.find("float8") != std::string::npos;
    };
    if (reference.audit) {
        if (is_low(reference.audit->autocast)) {
            return true;
        }
        for (const auto& [operation, dtypes] : reference.audit->matmul) {
            for (const auto& [dtype, calls] : dtypes) {
                if (is_low(dtype)) {
                    return true;
                }
            }
        }
    }
    return std::any_of(reference.param_dtypes.begin(), reference.param_dtypes.end(),
                       [&](const auto& entry) { return is_low(entry.first); });
}

double repeat_drift(const std::vector<Receipt>& repeats, const Pair& pair, Member member) {
    double drift = 0;
    for (const auto& repeat : repeats) {
        const auto* now = probe_at(repeat, pair.after->n);
        std::string missing;
        if (now == nullptr) {
            continue;
        }
        if (const auto tensors = compare(*now, nullptr, pair, member, missing)) {
            drift = std::max(drift, quantile(tensors->ratios, 0.75));
        }
    }
    return drift;
}

std::string names_of(const std::set<std::string>& names) {
    std::string text;
    int shown = 0;
    for (const auto& name : names) {
        if (shown++ == 3) {
            return fmt::format("{} and {} more", text, names.size() - 3);
        }
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

// Few tensors make quantiles and the lag share meaningless: a projection of δ can be small by chance. A handful of
// buffers is judged by late and stale tensors only, and by a deviation of several updates.
constexpr std::size_t kFewTensors = 8;

std::string problem_of(const Tensors& tensors, double limit, double lag, double drift, const Kind& kind, int n) {
    if (!tensors.odd.empty()) {
        return fmt::format("{} after update {}: {}", kind.name, n, tensors.odd);
    }
    const bool few = tensors.ratios.size() < kFewTensors;
    const double largest = few ? 10 * limit : limit;
    if (!few && lag > kMaxLag && drift > 0.2) {
        return fmt::format(
            "the {} after update {} are those of the update before (lag {:.2f} of an update over {} "
            "tensors)",
            kind.name, n, lag, tensors.ratios.size());
    }
    if (drift > largest) {
        return fmt::format(
            "the {} after update {} deviate by {:.3g} updates (upper quartile over {} tensors; at most "
            "{:.2g})",
            kind.name, n, drift, tensors.ratios.size(), largest);
    }
    return {};
}

class Comparison {
public:
    Comparison(const Receipt& candidate, const Receipt& reference, const std::vector<Receipt>& repeats)
        : candidate_(candidate), reference_(reference), repeats_(repeats) {}

    StateCheck run() {
        const auto pairs = pairs_of(reference_);
        result_.agrees = true;
        for (const auto& kind : kKinds) {
            for (const auto& pair : pairs) {
                if (result_.agrees) {
                    look(kind, pair);
                }
            }
            if (result_.agrees) {
                look_across(kind);
            }
        }
        result_.pairs = static_cast<int>(pairs.size());
        if (result_.agrees && result_.pairs > 0) {
            result_.evidence =
                fmt::format("state after update{} {} agrees: deviation {:.2g} updates, lag {:.2f}, over {} tensors",
                            result_.pairs == 1 ? "" : "s", updates_of(pairs), result_.drift, result_.lag, tensors_);
        }
        return std::move(result_);
    }

private:
    static std::string updates_of(const std::vector<Pair>& pairs) {
        std::string text;
        for (const auto& pair : pairs) {
            text += (text.empty() ? "" : ", ") + std::to_string(pair.after->n);
        }
        return text;
    }

    void reject(std::string why) {
        result_.agrees = false;
        result_.evidence = std::move(why);
    }

    void look(const Kind& kind, const Pair& pair) {
        if ((pair.after->*kind.member).empty()) {
            return;
        }
        const int n = pair.after->n;
        const auto* now = probe_at(candidate_, n);
        if (now == nullptr) {
            result_.missing = true;
            return reject(fmt::format("no state was reported after update {}, which the reference reports", n));
        }
        std::string missing;
        auto tensors = compare(*now, probe_at(candidate_, n - 1), pair, kind.member, missing);
        if (!tensors) {
            result_.missing = true;
            return reject(fmt::format("{} after update {}: {} is not reported, which the reference reports", kind.name,
                                      n, missing));
        }
        const double drift = quantile(tensors->ratios, 0.75);
        const double lag = tensors->lag_weight > 0 ? tensors->lag_sum / tensors->lag_weight : 0;
        const bool drifts = low_precision(reference_) && kind.member == &StateProbe::params;
        const double base = drifts ? std::max(kMaxDrift, kMaxDriftLowPerUpdate * n) : kMaxDrift;
        // The repeats are asked only when they could matter.
        const double limit = drift <= base ? base : std::max(base, 3 * repeat_drift(repeats_, pair, kind.member));
        if (tensors->ratios.size() >= kFewTensors) {
            result_.drift = std::max(result_.drift, drift);
            result_.lag = std::max(result_.lag, std::abs(lag));
        }
        tensors_ = std::max(tensors_, tensors->ratios.size());
        if (auto problem = problem_of(*tensors, limit, lag, drift, kind, n); !problem.empty()) {
            return reject(std::move(problem));
        }
        // In low precision a small update may round to nothing in one run and not in the other.
        const bool tells = !low_precision(reference_) || kind.member != &StateProbe::params;
        if (tells && !tensors->stale.empty()) {
            return reject(fmt::format("{} did not change in update {}, in which the reference changes {}: {}",
                                      tensors->stale.size() == 1 ? "a tensor" : "tensors", n,
                                      tensors->stale.size() == 1 ? "it" : "them", names_of(tensors->stale)));
        }
        // A handful of buffers has no median of its own; the parameters' tells how much honest runs differ.
        if (kind.member == &StateProbe::params) {
            typical_[n] = tensors->typical;
        }
        const bool few = tensors->ratios.size() < kFewTensors;
        const double typical = few && typical_.contains(n) ? typical_[n] : tensors->typical;
        if (typical <= kMostTypical) {
            find_late(typical, *tensors);
            late_.push_back(tensors->late);
        }
    }

    // Late in every pair: in one pair alone it can be chance.
    void look_across(const Kind& kind) {
        if (!late_.empty()) {
            auto late = late_.front();
            for (const auto& other : late_) {
                std::erase_if(late, [&](const std::string& name) { return !other.contains(name); });
            }
            // One pair alone is not proof against chance for a single tensor.
            if (late.size() >= (late_.size() > 1 ? 1u : 2u)) {
                reject(
                    fmt::format("{}: one update behind the reference at every check: {}", kind.name, names_of(late)));
            }
        }
        late_.clear();
    }

    const Receipt& candidate_;
    const Receipt& reference_;
    const std::vector<Receipt>& repeats_;
    std::vector<std::set<std::string>> late_;
    std::map<int, double> typical_;  // update → median deviation of the parameters
    std::size_t tensors_ = 0;
    StateCheck result_;
};

}  // namespace

StateCheck check_state(const Receipt& candidate, const Receipt& reference, const std::vector<Receipt>& repeats) {
    return Comparison(candidate, reference, repeats).run();
}

}  // namespace infrarsi
