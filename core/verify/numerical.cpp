// Layer 4: the same numbers, within the declared tolerance, in permitted precision.

#include <algorithm>
#include <cmath>
#include <set>

#include "core/verify/invariants.h"

namespace infrarsi {
namespace {

bool in_window(const Receipt& receipt, int n) {
    return n > receipt.warmup && n <= receipt.updates;
}

struct Deviation {
    int count = 0;       // updates compared
    double largest = 0;  // relative, of one update
    int largest_at = 0;  // that update
    double largest_own = 0, largest_reference = 0;
    double mean = 0, reference_mean = 0;  // window means of the losses
    int window = 0;                       // updates in the window means
    [[nodiscard]] double of_means() const { return relative_deviation(mean, reference_mean); }
};

// The largest deviation is taken over all updates: the first ones are the cleanest. Means are of the window; a run
// that has no window yet (it stopped early) is compared over what it has.
Deviation deviation_of(const Receipt& candidate, const Receipt& reference) {
    Deviation result;
    double all = 0, all_reference = 0;
    for (const auto& update : candidate.series) {
        const auto* other = update_at(reference, update.n);
        if (update.n > candidate.updates || other == nullptr || !other->loss || !update.loss) {
            continue;
        }
        ++result.count;
        all += *update.loss;
        all_reference += *other->loss;
        const double deviation = relative_deviation(*update.loss, *other->loss);
        if (deviation > result.largest || result.largest_at == 0) {
            result.largest = deviation;
            result.largest_at = update.n;
            result.largest_own = *update.loss;
            result.largest_reference = *other->loss;
        }
        if (!in_window(reference, update.n)) {
            continue;
        }
        ++result.window;
        result.mean += *update.loss;
        result.reference_mean += *other->loss;
    }
    const int count = result.window > 0 ? result.window : result.count;
    if (result.window == 0) {
        result.mean = all;
        result.reference_mean = all_reference;
    }
    if (count > 0) {
        result.mean /= count;
        result.reference_mean /= count;
    }
    return result;
}

std::string short_name(std::string dtype) {
    if (dtype.starts_with("torch.")) {
        dtype.erase(0, 6);
    }
    if (dtype == "float32" || dtype == "float") {
        return "fp32";
    }
    if (dtype == "bfloat16") {
        return "bf16";
    }
    if (dtype == "float16" || dtype == "half") {
        return "fp16";
    }
    if (dtype == "float64" || dtype == "double") {
        return "fp64";
    }
    if (dtype.starts_with("float8")) {
        return "fp8";
    }
    if (dtype.starts_with("float4")) {
        return "fp4";
    }
    return dtype;
}

// Masks, indices and counters, which matrix operations also take.
bool is_not_arithmetic(const std::string& name) {
    return name == "bool" || name == "int64" || name == "int32";
}

// dtype → where it was seen.
std::map<std::string, std::string> precisions_of(const Receipt& receipt) {
    std::map<std::string, std::string> seen;
    const auto add = [&](const std::string& dtype, std::string where) {
        const auto name = short_name(dtype);
        if (!name.empty() && !is_not_arithmetic(name)) {
            seen.try_emplace(name, std::move(where));
        }
    };
    if (receipt.audit) {
        for (const auto& [operation, dtypes] : receipt.audit->matmul) {
            for (const auto& [dtype, calls] : dtypes) {
                add(dtype, fmt::format("{} calls of {} in update {}", calls, operation, receipt.audit->n));
            }
        }
        add(receipt.audit->autocast, fmt::format("autocast in update {}", receipt.audit->n));
    }
    for (const auto& [dtype, elements] : receipt.param_dtypes) {
        if (elements > 0) {
            add(dtype, fmt::format("{} elements of parameters", elements));
        }
    }
    return seen;
}

std::string joined(const std::set<std::string>& names) {
    std::string text;
    for (const auto& name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text.empty() ? "none" : text;
}

}  // namespace

LossTolerance loss_tolerance(const Comparison& c) {
    LossTolerance result{c.rules.tolerance, false, c.same_data_proven, {}};
    double repeats = 0;
    for (const auto& repeat : c.evidence.repeats) {
        const auto deviation = deviation_of(repeat, c.reference());
        if (deviation.count > 0) {
            repeats = std::max(repeats, deviation.largest);
        }
    }
    const bool stopped_early = updates_done(c.candidate) < c.candidate.updates;
    const bool noisy = repeats > c.rules.tolerance;
    if (!stopped_early && !noisy) {
        return result;
    }
    const auto deviation = deviation_of(c.reference(), c.reference());
    const int k = deviation.window > 0 ? deviation.window : deviation.count;
    if (k == 0 || c.evidence.noise.sigma_loss <= 0 || deviation.reference_mean == 0) {
        return result;
    }
    // sigma_loss is that of a difference of two runs, √2 σ_ℓ, so 3 σ_ℓ √(2/k) is three times it over √k.
    const double wide =
        3 * c.evidence.noise.sigma_loss / std::sqrt(static_cast<double>(k)) / std::abs(deviation.reference_mean);
    if (wide <= result.relative) {
        return result;
    }
    result.relative = wide;
    result.widened = true;
    result.why = noisy ? fmt::format("the reference's own repeat deviates by {:.3g} % at an update", 100 * repeats)
                       : "the run stopped before the end of its window";
    // The per-update rule would reject the reference itself.
    if (noisy) {
        result.per_update = false;
    }
    return result;
}

InvariantResult loss_within_tolerance(const Comparison& c) {
    const auto id = InvariantId::loss_within_tolerance;
    const auto deviation = deviation_of(c.candidate, c.reference());
    if (deviation.count == 0) {
        const bool known = std::any_of(c.reference().series.begin(), c.reference().series.end(),
                                       [](const UpdateRecord& update) { return update.loss.has_value(); });
        if (known && !c.candidate.series.empty()) {
            return result_of(id, Status::fail, "no loss is reported, which the reference reports");
        }
        return result_of(id, Status::unchecked, "no loss is known to compare",
                         "run the job with the hook, or let it print its loss at each update");
    }
    for (const auto& update : c.candidate.series) {
        const auto* other = update_at(c.reference(), update.n);
        if (update.n <= c.candidate.updates && other != nullptr && other->loss && !update.loss) {
            return result_of(id, Status::fail,
                             fmt::format("no loss at update {}, where the reference reports one", update.n));
        }
    }
    const auto tolerance = loss_tolerance(c);
    const double held = tolerance.per_update ? std::max(deviation.largest, deviation.of_means()) : deviation.of_means();
    const auto limit = fmt::format("{:.3g} %{}", 100 * tolerance.relative,
                                   tolerance.widened ? " (widened: " + tolerance.why + ")" : "");
    const auto means = fmt::format("window-mean loss {:.5g} against {:.5g}, {:.3g} %", deviation.mean,
                                   deviation.reference_mean, 100 * deviation.of_means());
    const auto largest = fmt::format("largest at update {}: {:.5g} against {:.5g}, {:.3g} %", deviation.largest_at,
                                     deviation.largest_own, deviation.largest_reference, 100 * deviation.largest);
    const bool within = held <= tolerance.relative;
    return result_of(id, within ? Status::pass : Status::fail,
                     fmt::format("{}; {}; {} held, tolerance {}", means, largest,
                                 tolerance.per_update ? "the largest is" : "the mean is", limit));
}

InvariantResult grad_norm_within_tol(const Comparison& c) {
    const auto id = InvariantId::grad_norm_within_tol;
    const auto* wanted = update_at(c.reference(), 1);
    const auto* held = update_at(c.candidate, 1);
    if (wanted == nullptr || !wanted->grad_norm) {
        return result_of(id, Status::reported, "the reference reports no gradient norm at its first update",
                         "let the job print its gradient norm, or compute it where the hook sees it");
    }
    if (held == nullptr) {
        return result_of(id, Status::unchecked, "the candidate completed no update to compare",
                         "see completes and no_errors for why it stopped");
    }
    if (!held->grad_norm) {
        return result_of(id, Status::fail, "no gradient norm at the first update, which the reference reports");
    }
    const double deviation = relative_deviation(*held->grad_norm, *wanted->grad_norm);
    const auto text =
        fmt::format("gradient norm of the first update {:.6g} against {:.6g}, {:.3g} %, tolerance {:.3g} %",
                    *held->grad_norm, *wanted->grad_norm, 100 * deviation, 100 * c.rules.tolerance);
    if (deviation <= c.rules.tolerance) {
        return result_of(id, Status::pass, text);
    }
    if (c.same_data_proven) {
        return result_of(id, Status::fail, text);
    }
    return result_of(id, Status::reported, text + "; the same first batch is not proven");
}

InvariantResult eval_matches(const Comparison& c) {
    const auto id = InvariantId::eval_matches;
    if (!c.rules.eval) {
        return result_of(id, Status::unchecked, "no evaluation is configured");
    }
    const auto& held = c.candidate.eval;
    const auto& wanted = c.reference().eval;
    if (!held || !wanted) {
        return result_of(id, Status::unchecked,
                         fmt::format("the evaluation of the {} was not run", held ? "reference" : "candidate"),
                         "run the configured evaluation: " + c.rules.eval->command);
    }
    if (held->exit_code != 0) {
        return result_of(id, Status::fail,
                         fmt::format("the evaluation ended with exit code {}{}", held->exit_code,
                                     held->note.empty() ? "" : ": " + held->note));
    }
    if (!held->value || !wanted->value) {
        return result_of(id, held->value ? Status::unchecked : Status::fail,
                         fmt::format("the evaluation printed no {}", c.rules.eval->metric),
                         "let the evaluation print the metric that the contract names");
    }
    const double deviation = relative_deviation(*held->value, *wanted->value);
    return result_of(id, deviation <= c.rules.eval->tolerance ? Status::pass : Status::fail,
                     fmt::format("{} {:.6g} against {:.6g}, {:.3g} %, tolerance {:.3g} %", c.rules.eval->metric,
                                 *held->value, *wanted->value, 100 * deviation, 100 * c.rules.eval->tolerance));
}

InvariantResult precision(const Comparison& c) {
    const auto id = InvariantId::precision;
    std::set<std::string> allowed;
    for (const auto& dtype : c.rules.precision_menu) {
        allowed.insert(short_name(dtype));
    }
    // What the reference itself computes in is permitted: a menu names what candidates may add.
    const auto reference = precisions_of(c.reference());
    for (const auto& [name, where] : reference) {
        allowed.insert(name);
    }
    const auto seen = precisions_of(c.candidate);
    std::set<std::string> names;
    for (const auto& [name, where] : seen) {
        names.insert(name);
        // Where nothing is known of the reference and nothing is declared there is nothing to hold.
        if (!allowed.empty() && !allowed.contains(name)) {
            return result_of(
                id, Status::fail,
                fmt::format("{} is outside the permitted precisions ({}): {}", name, joined(allowed), where));
        }
    }
    if (!c.candidate.audit) {
        return result_of(id, Status::reported,
                         fmt::format("no matrix operation was audited; parameters are {}", joined(names)),
                         "run the job with the hook and an audited update");
    }
    return result_of(
        id, Status::pass,
        fmt::format("{} within {} (audited update {})", joined(names), joined(allowed), c.candidate.audit->n));
}

}  // namespace infrarsi
