#include "core/verify/perturbation_tools.h"

namespace infrarsi::perturb {

using Id = InvariantId;

namespace {

UpdateRecord* middle_of_window(Receipt& receipt) {
    for (auto& update : receipt.series) {
        if (update.n == receipt.warmup + 1 + (receipt.updates - receipt.warmup) / 2) {
            return &update;
        }
    }
    return nullptr;
}

}  // namespace

// A change of the whole receipt, always possible.
Perturbation whole(std::string name, std::optional<Id> expected, std::function<void(Receipt&)> change) {
    return {std::move(name), expected, [change = std::move(change)](Receipt& receipt, const ReferenceEvidence&) {
                change(receipt);
                return true;
            }};
}

// A change of each update; false from `change` means that the update lacks the field.
Perturbation each(std::string name, std::optional<Id> expected, std::function<bool(UpdateRecord&)> change) {
    return {std::move(name), expected, [change = std::move(change)](Receipt& receipt, const ReferenceEvidence&) {
                bool changed = false;
                for (auto& update : receipt.series) {
                    changed = change(update) || changed;
                }
                return changed;
            }};
}

// A change of one update in the middle of the window.
Perturbation one(std::string name, std::optional<Id> expected, std::function<bool(UpdateRecord&)> change) {
    return {std::move(name), expected, [change = std::move(change)](Receipt& receipt, const ReferenceEvidence&) {
                auto* update = middle_of_window(receipt);
                return update != nullptr && change(*update);
            }};
}

FailureLine line_at(const char* failure_class, const char* text, double t_s) {
    return {failure_class, text, "stderr", 17, t_s};
}

double mid_time(const Receipt& receipt) {
    return receipt.series.empty() ? 0 : receipt.series[receipt.series.size() / 2].t_s;
}

// Moves all arrivals so that each step takes `factor` of its time.
void stretch(Receipt& receipt, double factor) {
    const double end = receipt.series.empty() ? 0 : receipt.series.back().t_s;
    for (auto& update : receipt.series) {
        update.t_s *= factor;
        if (update.reported_s) {
            *update.reported_s *= factor;
        }
    }
    const double added = end * (factor - 1);
    receipt.execution.duration_s += added;
    receipt.execution.wall_end_s += added;
}

void delay_from(Receipt& receipt, int n, double seconds) {
    for (auto& update : receipt.series) {
        if (update.n >= n) {
            update.t_s += seconds;
        }
        if (update.n == n && update.reported_s) {
            *update.reported_s += seconds;
        }
    }
    receipt.execution.duration_s += seconds;
    receipt.execution.wall_end_s += seconds;
}

double first_step(const Receipt& receipt) {
    return receipt.series.size() < 2 ? 1 : receipt.series[1].t_s - receipt.series[0].t_s;
}

const StateProbe* probe_of(const Receipt& receipt, int n) {
    for (const auto& probe : receipt.probes) {
        if (probe.n == n) {
            return &probe;
        }
    }
    return nullptr;
}

}  // namespace infrarsi::perturb
