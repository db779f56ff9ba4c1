// Layers 2 and 3: the same work, the same data, the same model, untouched files, and every optimizer step.

#include <cmath>

#include "core/verify/invariants.h"
#include "core/verify/state_check.h"

namespace infrarsi {
namespace {

constexpr double kSameRate = 1e-6;  // relative; a printed learning rate is rounded alike in both runs

// The updates that both runs should have: those that were asked for and that the candidate reached. That it stops
// early is for `completes` to reject.
struct Overlap {
    int last = 0;
};

Overlap overlap_of(const Comparison& c) {
    return {std::min({c.candidate.updates, updates_done(c.candidate), updates_done(c.reference())})};
}

// Compares one optional number at every update.
enum class Reported { nowhere, equal, differs };
struct FieldComparison {
    Reported found = Reported::nowhere;
    std::string difference;
    std::int64_t value = 0;  // at the first update
};

FieldComparison compare_counts(const Comparison& c, std::optional<std::int64_t> UpdateRecord::* field,
                               std::string_view name) {
    FieldComparison result;
    for (int n = 1; n <= overlap_of(c).last; ++n) {
        const auto& wanted = update_at(c.reference(), n)->*field;
        const auto& held = update_at(c.candidate, n)->*field;
        if (!wanted) {
            continue;
        }
        if (!held) {
            return {Reported::differs,
                    fmt::format("{} is not reported at update {}, which the reference "
                                "reports",
                                name, n),
                    0};
        }
        if (*held != *wanted) {
            return {Reported::differs,
                    fmt::format("{} at update {}: {} where the reference has {}", name, n, *held, *wanted), 0};
        }
        if (result.found == Reported::nowhere) {
            result = {Reported::equal, {}, *held};
        }
    }
    return result;
}

InvariantResult nothing_to_compare(InvariantId id) {
    return result_of(id, Status::unchecked, "the candidate completed no update to compare",
                     "see completes and no_errors for why it stopped");
}

bool has_series(const Comparison& c) {
    return overlap_of(c).last > 0;
}

std::string short_digest(const std::string& digest) {
    return digest.substr(0, 12);
}

std::optional<std::string> rates_differ(const Comparison& c, bool& compared) {
    for (int n = 1; n <= overlap_of(c).last; ++n) {
        const auto& wanted = update_at(c.reference(), n)->lr;
        const auto& held = update_at(c.candidate, n)->lr;
        if (!wanted) {
            continue;
        }
        if (!held) {
            return fmt::format("the learning rate is not reported at update {}, which the reference reports", n);
        }
        compared = true;
        if (relative_deviation(*held, *wanted) > kSameRate) {
            return fmt::format("learning rate at update {}: {:.6g} where the reference has {:.6g}", n, *held, *wanted);
        }
    }
    return std::nullopt;
}

bool states_seq_len(const Receipt& receipt) {
    return std::any_of(receipt.series.begin(), receipt.series.end(),
                       [](const UpdateRecord& update) { return update.seq_len.has_value(); });
}

}  // namespace

InvariantResult same_workload(const Comparison& c) {
    const auto id = InvariantId::same_workload;
    if (!has_series(c)) {
        return nothing_to_compare(id);
    }
    const auto tokens = compare_counts(c, &UpdateRecord::tokens, "tokens");
    const auto samples = compare_counts(c, &UpdateRecord::samples, "samples");
    const auto seq_len = compare_counts(c, &UpdateRecord::seq_len, "the sequence length");
    for (const auto* part : {&tokens, &samples, &seq_len}) {
        if (part->found == Reported::differs) {
            return result_of(id, Status::fail, part->difference);
        }
    }
    const bool counted = tokens.found == Reported::equal || samples.found == Reported::equal;
    if (!counted) {
        return result_of(id, Status::unchecked, "neither tokens nor samples per update are known",
                         "run the job with the hook, or let it print tokens per update");
    }
    // The hook counts tokens and samples of every job, and a sequence length only where batches have such an axis.
    const bool has_no_axis = tokens.found == Reported::equal && samples.found == Reported::equal &&
                             !states_seq_len(c.candidate) && !states_seq_len(c.reference());
    if (has_no_axis) {
        return result_of(
            id, Status::pass,
            fmt::format("{} samples and {} tokens per update at all {} updates; the batches have no sequence "
                        "axis",
                        samples.value, tokens.value, overlap_of(c).last));
    }
    if (seq_len.found != Reported::equal) {
        return result_of(id, Status::unchecked, "the sequence length of the updates is not known",
                         "run the job with the hook");
    }
    return result_of(
        id, Status::pass,
        fmt::format("{} {} per update, sequence length {}, at all {} updates",
                    tokens.found == Reported::equal ? tokens.value : samples.value,
                    tokens.found == Reported::equal ? "tokens" : "samples", seq_len.value, overlap_of(c).last));
}

InvariantResult same_data(const Comparison& c) {
    const auto id = InvariantId::same_data;
    if (!has_series(c)) {
        return nothing_to_compare(id);
    }
    int compared = 0;
    for (int n = 1; n <= overlap_of(c).last; ++n) {
        const auto& wanted = update_at(c.reference(), n)->data;
        const auto& held = update_at(c.candidate, n)->data;
        if (wanted.empty()) {
            continue;
        }
        if (held.empty()) {
            return result_of(id, Status::fail, fmt::format("no data digest at update {}, which the reference has", n));
        }
        if (held != wanted) {
            return result_of(id, Status::fail,
                             fmt::format("data of update {}: digest {} where the reference has {}", n, held, wanted));
        }
        ++compared;
    }
    if (compared < overlap_of(c).last) {
        return result_of(
            id, Status::unchecked,
            fmt::format("the reference has a data digest at {} of {} updates", compared, overlap_of(c).last),
            "run the job with the hook; models whose inputs are not tensors cannot be digested");
    }
    return result_of(id, Status::pass, fmt::format("the same samples at all {} updates", compared));
}

InvariantResult same_model(const Comparison& c) {
    const auto id = InvariantId::same_model;
    const auto& wanted = c.reference();
    const auto& held = c.candidate;
    if (wanted.model_digest.empty() && !wanted.trainable_params) {
        return result_of(id, Status::unchecked, "no model digest and no parameter count are known",
                         "run the job with the hook");
    }
    if (!has_series(c) && held.model_digest.empty()) {
        return nothing_to_compare(id);
    }
    if (!wanted.model_digest.empty() && held.model_digest != wanted.model_digest) {
        return result_of(id, Status::fail,
                         held.model_digest.empty()
                             ? "no model digest, which the reference has"
                             : fmt::format("model digest {} where the reference has {}",
                                           short_digest(held.model_digest), short_digest(wanted.model_digest)));
    }
    if (wanted.trainable_params && held.trainable_params != wanted.trainable_params) {
        return result_of(id, Status::fail,
                         held.trainable_params ? fmt::format("{} trainable parameters where the reference has {}",
                                                             *held.trainable_params, *wanted.trainable_params)
                                               : "no count of trainable parameters, which the reference has");
    }
    return result_of(id, Status::pass,
                     fmt::format("model digest {}, {} trainable parameters", short_digest(held.model_digest),
                                 held.trainable_params.value_or(0)));
}

InvariantResult frozen_files(const Comparison& c) {
    const auto id = InvariantId::frozen_files;
    const auto& held = c.candidate;
    for (const auto& [path, wanted] : c.reference().frozen_before) {
        const auto before = held.frozen_before.find(path), after = held.frozen_after.find(path);
        if (before == held.frozen_before.end() || after == held.frozen_after.end()) {
            return result_of(id, Status::fail, path + " was not hashed, which it was for the reference");
        }
        if (after->second != before->second) {
            return result_of(
                id, Status::fail,
                fmt::format("{} {} during the run", path, after->second == "missing" ? "disappeared" : "was changed"));
        }
        if (before->second != wanted) {
            return result_of(id, Status::fail,
                             fmt::format("{} differs from the reference's ({} and {})", path,
                                         short_digest(before->second), short_digest(wanted)));
        }
    }
    for (const auto& [path, digest] : held.frozen_before) {
        if (!c.reference().frozen_before.contains(path)) {
            return result_of(id, Status::fail, path + " is frozen but was not hashed for the reference");
        }
    }
    if (!held.frozen_touched.empty()) {
        return result_of(
            id, Status::fail,
            fmt::format("the job wrote, or tried to write, to {} during the run", held.frozen_touched.front()));
    }
    return result_of(id, Status::pass,
                     held.frozen_before.empty()
                         ? "no file is declared frozen"
                         : fmt::format("{} files unchanged and not written to", held.frozen_before.size()));
}

InvariantResult optimizer_steps(const Comparison& c) {
    const auto id = InvariantId::optimizer_steps;
    if (!has_series(c)) {
        return nothing_to_compare(id);
    }
    const auto steps = compare_counts(c, &UpdateRecord::opt_steps, "the optimizer's step counter");
    if (steps.found == Reported::differs) {
        return result_of(id, Status::fail, steps.difference);
    }
    bool rates_compared = false;
    if (auto why = rates_differ(c, rates_compared)) {
        return result_of(id, Status::fail, *why);
    }
    // A run that stopped early cannot have answered the checks that come later; completes rejects it.
    const bool complete = updates_done(c.candidate) >= c.candidate.updates;
    const auto state = check_state(c.candidate, c.reference(), c.evidence.repeats);
    if (!state.agrees && (complete || !state.missing)) {
        return result_of(id, Status::fail, state.evidence);
    }
    if (steps.found == Reported::nowhere) {
        return result_of(id, Status::unchecked,
                         rates_compared ? "only the learning rate is known; it follows the reference's schedule"
                                        : "neither a step counter nor a learning rate is known",
                         "run the job with the hook, which counts optimizer steps");
    }
    const auto counted = fmt::format("the step counter equals the reference's at all {} updates{}", overlap_of(c).last,
                                     rates_compared ? ", and so does the learning rate" : "");
    if (state.pairs == 0) {
        return result_of(id, Status::pass, counted + "; the state itself was not probed at consecutive updates");
    }
    return result_of(id, Status::pass, counted + "; " + state.evidence);
}

}  // namespace infrarsi
