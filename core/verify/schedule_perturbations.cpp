// Faults of the schedule, the numbers and the clocks.

#include "core/verify/perturbation_tools.h"

#include <cmath>

namespace infrarsi::perturb {

using Id = InvariantId;

namespace {

using Member = std::map<std::string, double> StateProbe::*;

// Gives the candidate the reference's state of one update ago, for the tensors that `choose` picks.
bool lag(Receipt& candidate, const Receipt& reference, Member member, bool (*choose)(std::size_t)) {
    bool changed = false;
    for (auto& probe : candidate.probes) {
        const auto* before = probe_of(reference, probe.n - 1);
        const auto* now = probe_of(reference, probe.n);
        if (before == nullptr || now == nullptr) {
            continue;
        }
        std::size_t index = 0;
        for (auto& [name, value] : probe.*member) {
            const auto old = (before->*member).find(name);
            const auto current = (now->*member).find(name);
            const bool moves = old != (before->*member).end() && current != (now->*member).end() &&
                               old->second != current->second && std::isfinite(current->second);
            if (choose(index++) && moves) {
                value = old->second;
                changed = true;
            }
        }
    }
    return changed;
}

bool all_of(std::size_t) {
    return true;
}
bool third_only(std::size_t index) {
    return index == 3;
}

// As if an update's work had been left out in the middle of the run.
bool skip_updates(Receipt& candidate, const Receipt& reference) {
    bool changed = false;
    for (auto& probe : candidate.probes) {
        const auto* before = probe_of(reference, probe.n - 1);
        const auto* now = probe_of(reference, probe.n);
        if (before == nullptr || now == nullptr) {
            continue;
        }
        for (auto& [name, value] : probe.params) {
            const auto old = before->params.find(name), current = now->params.find(name);
            if (old == before->params.end() || current == now->params.end()) {
                continue;
            }
            // Alternating signs: in the direction of an update, but not that of the last one.
            value += (name.size() % 2 == 0 ? 2.0 : -2.0) * (current->second - old->second);
            changed = true;
        }
    }
    return changed;
}

bool keep_stale(Receipt& candidate) {
    for (std::size_t i = 1; i < candidate.probes.size(); ++i) {
        if (candidate.probes[i].n != candidate.probes[i - 1].n + 1 || candidate.probes[i].params.empty()) {
            continue;
        }
        const auto& [name, before] = *candidate.probes[i - 1].params.begin();
        candidate.probes[i].params[name] = before;
        return true;
    }
    return false;
}

}  // namespace

std::vector<Perturbation> schedule_faults() {
    return {
        each("extra optimizer steps", Id::optimizer_steps,
             [](UpdateRecord& u) {
                 if (u.opt_steps) {
                     *u.opt_steps += u.n;
                 }
                 return u.opt_steps.has_value();
             }),
        each("optimizer steps left out", Id::optimizer_steps,
             [](UpdateRecord& u) {
                 if (u.opt_steps) {
                     *u.opt_steps = (u.n + 1) / 2;
                 }
                 return u.opt_steps.has_value();
             }),
        one("one optimizer step left out", Id::optimizer_steps,
            [](UpdateRecord& u) {
                if (u.opt_steps) {
                    *u.opt_steps -= 1;
                }
                return u.opt_steps.has_value();
            }),
        each("step counter missing", Id::optimizer_steps,
             [](UpdateRecord& u) {
                 const bool had = u.opt_steps.has_value();
                 u.opt_steps.reset();
                 return had;
             }),
        each("learning-rate schedule changed", Id::optimizer_steps,
             [](UpdateRecord& u) {
                 if (u.lr) {
                     *u.lr *= 0.5;
                 }
                 return u.lr.has_value();
             }),
        {"state one update behind", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence& e) { return lag(r, e.reference, &StateProbe::params, all_of); }},
        {"one tensor one update behind", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence& e) { return lag(r, e.reference, &StateProbe::params, third_only); }},
        {"optimizer state one update behind", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence& e) { return lag(r, e.reference, &StateProbe::optimizer, all_of); }},
        {"buffers not updated", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence& e) {
             bool changed = false;
             for (auto& probe : r.probes) {
                 for (auto& [name, value] : probe.buffers) {
                     if (std::isfinite(value)) {
                         value += 1 + std::abs(value);
                         changed = true;
                     }
                 }
             }
             return lag(r, e.reference, &StateProbe::buffers, all_of) || changed;
         }},
        {"updates skipped while the counter goes on", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence& e) { return skip_updates(r, e.reference); }},
        {"one tensor never changes", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence&) { return keep_stale(r); }},
        {"state probes missing", Id::optimizer_steps,
         [](Receipt& r, const ReferenceEvidence&) {
             const bool had = !r.probes.empty();
             r.probes.clear();
             return had;
         }},
    };
}

std::vector<Perturbation> numerical_faults() {
    return {
        one("loss off by 5 % at one update", Id::loss_within_tolerance,
            [](UpdateRecord& u) {
                if (u.loss) {
                    *u.loss *= 1.05;
                }
                return u.loss.has_value();
            }),
        each("loss off by 4 %", Id::loss_within_tolerance,
             [](UpdateRecord& u) {
                 if (u.loss) {
                     *u.loss *= 1.04;
                 }
                 return u.loss.has_value();
             }),
        each("loss not reported", Id::loss_within_tolerance,
             [](UpdateRecord& u) {
                 const bool had = u.loss.has_value();
                 u.loss.reset();
                 return had;
             }),
        {"first gradient norm off by 10 %", Id::grad_norm_within_tol,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.series.empty() || !r.series.front().grad_norm) {
                 return false;
             }
             *r.series.front().grad_norm *= 1.1;
             return true;
         }},
        {"gradient norm not reported", Id::grad_norm_within_tol,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.series.empty() || !r.series.front().grad_norm) {
                 return false;
             }
             for (auto& u : r.series) {
                 u.grad_norm.reset();
             }
             return true;
         }},
        {"matrix products in fp8", Id::precision,
         [](Receipt& r, const ReferenceEvidence&) {
             if (!r.audit) {
                 return false;
             }
             r.audit->matmul["_scaled_mm"]["float8_e4m3fn"] = 4;
             return true;
         }},
        {"parameters in another precision", Id::precision,
         [](Receipt& r, const ReferenceEvidence&) {
             const bool known = !r.param_dtypes.empty();
             r.param_dtypes["float8_e5m2"] = 1000;
             return known;
         }},
        {"autocast to fp8", Id::precision,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.audit) {
                 r.audit->autocast = "float8_e4m3fn";
             }
             return r.audit.has_value();
         }},
    };
}

std::vector<Perturbation> timing_faults() {
    return {
        whole("wall and monotonic clock disagree", Id::timing_consistent,
              [](Receipt& r) { r.execution.wall_end_s += 5 + r.execution.duration_s; }),
        each("reported step time faster than the harness's", Id::timing_consistent,
             [](UpdateRecord& u) {
                 if (u.reported_s) {
                     *u.reported_s *= 0.7;
                 }
                 return u.reported_s.has_value();
             }),
        each("step time no longer reported", Id::timing_consistent,
             [](UpdateRecord& u) {
                 const bool had = u.reported_s.has_value();
                 u.reported_s.reset();
                 return had;
             }),
        {"arrivals not in order", Id::timing_consistent,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.series.size() < 3) {
                 return false;
             }
             std::swap(r.series[1].t_s, r.series[2].t_s);
             return true;
         }},
        each("arrival not a number", Id::timing_consistent,
             [](UpdateRecord& u) {
                 u.t_s = std::nan("");
                 return true;
             }),
        one("arrival before the start", Id::timing_consistent,
            [](UpdateRecord& u) {
                u.t_s = -1;
                return true;
            }),
    };
}

}  // namespace infrarsi::perturb
