#include "core/verify/perturbations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace infrarsi {
namespace {

using Id = InvariantId;

UpdateRecord* middle_of_window(Receipt& receipt) {
    for (auto& update : receipt.series) {
        if (update.n == receipt.warmup + 1 + (receipt.updates - receipt.warmup) / 2) {
            return &update;
        }
    }
    return nullptr;
}

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

std::vector<Perturbation> execution_faults() {
    return {
        whole("exits with code 1", Id::completes,
              [](Receipt& r) {
                  r.execution.exit_code = 1;
                  r.execution.stopped.clear();
              }),
        whole("killed by a signal", Id::completes,
              [](Receipt& r) {
                  r.execution.exit_code.reset();
                  r.execution.signal = 9;
                  r.execution.stopped.clear();
              }),
        whole("wall time limit", Id::completes, [](Receipt& r) { r.execution.timed_out = "wall"; }),
        whole("silence time limit", Id::completes, [](Receipt& r) { r.execution.timed_out = "silence"; }),
        whole("cancelled", Id::completes, [](Receipt& r) { r.execution.cancelled = true; }),
        whole("exits early with code 0", Id::completes,
              [](Receipt& r) {
                  r.execution.exit_code = 0;
                  r.series.resize(r.series.size() / 2);
              }),
        whole("one update short", Id::completes, [](Receipt& r) { r.series.pop_back(); }),
        whole("an update is missing in the middle", Id::completes,
              [](Receipt& r) { r.series.erase(r.series.begin() + static_cast<std::ptrdiff_t>(r.series.size() / 2)); }),
        whole("job could not be started", Id::completes, [](Receipt& r) { r.execution.error = "no such file"; }),
        one("NaN loss", Id::no_errors,
            [](UpdateRecord& u) {
                u.loss = std::nan("");
                return true;
            }),
        one("infinite loss", Id::no_errors,
            [](UpdateRecord& u) {
                u.loss = std::numeric_limits<double>::infinity();
                return true;
            }),
        one("NaN gradient norm", Id::no_errors,
            [](UpdateRecord& u) {
                u.grad_norm = std::nan("");
                return true;
            }),
        each("constant loss", Id::no_errors,
             [](UpdateRecord& u) {
                 u.loss = 4.0;
                 return true;
             }),
        {"constant gradient norm", Id::no_errors,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.series.empty() || !r.series.front().grad_norm) {
                 return false;
             }
             for (auto& u : r.series) {
                 u.grad_norm = r.series.front().grad_norm;
             }
             return true;
         }},
        whole("out-of-memory line", Id::no_errors,
              [](Receipt& r) {
                  r.failures.push_back(
                      line_at("oom_device", "CUDA out of memory. Tried to allocate 2.00 GiB", mid_time(r)));
              }),
        whole("traceback line", Id::no_errors,
              [](Receipt& r) {
                  r.failures.push_back(line_at("traceback", "Traceback (most recent call last):", mid_time(r)));
              }),
        whole("NCCL error before the last update", Id::no_errors,
              [](Receipt& r) {
                  r.failures.push_back(line_at("collective", "ncclSystemError: System call failed", mid_time(r)));
              }),
        whole("CUDA error line", Id::no_errors,
              [](Receipt& r) {
                  r.failures.push_back(
                      line_at("kernel", "CUDA error: an illegal memory access was encountered", mid_time(r)));
              }),
        {"peak above the cap", Id::memory_cap,
         [](Receipt& r, const ReferenceEvidence&) {
             if (!r.memory.peak_gib) {
                 return false;
             }
             r.memory.cap_gib = *r.memory.peak_gib;  // a cap of the contract is lower or higher; the peak tops both
             r.memory.peak_gib = 1e6;
             return true;
         }},
        whole("peak not measured", Id::memory_cap, [](Receipt& r) { r.memory.peak_gib.reset(); }),
    };
}

std::vector<Perturbation> workload_faults() {
    return {
        each("tokens halved", Id::same_workload,
             [](UpdateRecord& u) {
                 if (u.tokens) {
                     *u.tokens /= 2;
                 }
                 return u.tokens.has_value();
             }),
        each("tokens not reported", Id::same_workload,
             [](UpdateRecord& u) {
                 const bool had = u.tokens.has_value();
                 u.tokens.reset();
                 return had;
             }),
        one("tokens differ at one update", Id::same_workload,
            [](UpdateRecord& u) {
                if (u.tokens) {
                    *u.tokens -= 1;
                }
                return u.tokens.has_value();
            }),
        each("sequences shortened", Id::same_workload,
             [](UpdateRecord& u) {
                 if (u.seq_len) {
                     *u.seq_len /= 2;
                 }
                 return u.seq_len.has_value();
             }),
        one("sequence length differs at one update", Id::same_workload,
            [](UpdateRecord& u) {
                if (u.seq_len) {
                    *u.seq_len -= 1;
                }
                return u.seq_len.has_value();
            }),
        each("samples halved", Id::same_workload,
             [](UpdateRecord& u) {
                 if (u.samples) {
                     *u.samples /= 2;
                 }
                 return u.samples.has_value();
             }),
        {"data order swapped", Id::same_data,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.series.size() < 2 || r.series[0].data == r.series[1].data) {
                 return false;
             }
             std::swap(r.series[0].data, r.series[1].data);
             return true;
         }},
        each("data digest missing", Id::same_data,
             [](UpdateRecord& u) {
                 const bool had = !u.data.empty();
                 u.data.clear();
                 return had;
             }),
        {"one batch repeated", Id::same_data,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.series.empty() || r.series.front().data.empty()) {
                 return false;
             }
             for (auto& u : r.series) {
                 u.data = r.series.front().data;
             }
             return true;
         }},
        whole("another model", Id::same_model, [](Receipt& r) { r.model_digest = std::string(64, '0'); }),
        whole("model digest missing", Id::same_model, [](Receipt& r) { r.model_digest.clear(); }),
        whole("fewer trainable parameters", Id::same_model,
              [](Receipt& r) { r.trainable_params = r.trainable_params.value_or(1000) - 1; }),
        whole("parameter count missing", Id::same_model, [](Receipt& r) { r.trainable_params.reset(); }),
        {"frozen file edited", Id::frozen_files,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.frozen_after.empty()) {
                 return false;
             }
             r.frozen_after.begin()->second = std::string(64, 'e');
             return true;
         }},
        {"frozen file differs from the reference's", Id::frozen_files,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.frozen_after.empty()) {
                 return false;
             }
             r.frozen_before.begin()->second = r.frozen_after.begin()->second = std::string(64, 'e');
             return true;
         }},
        {"frozen file missing", Id::frozen_files,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.frozen_after.empty()) {
                 return false;
             }
             r.frozen_after.begin()->second = "missing";
             return true;
         }},
        {"frozen file restored", Id::frozen_files,
         [](Receipt& r, const ReferenceEvidence&) {
             if (r.frozen_before.empty()) {
                 return false;
             }
             r.frozen_touched.push_back(r.frozen_before.begin()->first);
             return true;
         }},
    };
}

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

// Deterministic jitter of about ±6 %: the machine is shared, and both clocks see it.
void jitter(Receipt& receipt) {
    double before = 0, moved = 0;
    for (auto& update : receipt.series) {
        const double factor = 1 + 0.06 * std::sin(12.9898 * update.n);
        moved += (update.t_s - before) * factor;
        before = update.t_s;
        update.t_s = moved;
        if (update.reported_s) {
            *update.reported_s *= factor;
        }
    }
    const double added = moved - before;
    receipt.execution.duration_s += added;
    receipt.execution.wall_end_s += added;
}

}  // namespace

std::vector<Perturbation> harmful_perturbations() {
    std::vector<Perturbation> all;
    for (auto part : {execution_faults(), workload_faults(), schedule_faults(), numerical_faults(), timing_faults()}) {
        for (auto& perturbation : part) {
            all.push_back(std::move(perturbation));
        }
    }
    return all;
}

std::vector<Perturbation> benign_perturbations() {
    return {
        whole("unchanged (B01)", {}, [](Receipt&) {}),
        whole("comment-only edit (B02)", {},
              [](Receipt& r) {
                  r.tree_digest = std::string(64, 'c');
                  r.candidate.patches.push_back(
                      {"a comment", "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n a\n+# b\n", "user"});
              }),
        whole("micro-batch doubled with accumulation halved (B13)", {},
              [](Receipt& r) { r.candidate.settings["micro_batch"] = std::int64_t{4}; }),
        whole("NCCL warning after a clean exit (B08)", {},
              [](Receipt& r) {
                  const double after = r.series.empty() ? 0 : r.series.back().t_s + 0.1;
                  r.failures.push_back(line_at("collective", "NCCL communicator was aborted on rank 0", after));
              }),
        whole("a retried connection in the log (B09)", {},
              [](Receipt& r) {
                  r.failures.push_back(
                      line_at("environment", "Address already in use, trying the next port", mid_time(r)));
              }),
        whole("6 % jitter (B14)", {}, jitter),
        whole("a slower candidate (B20)", {}, [](Receipt& r) { stretch(r, 1.3); }),
        whole("a candidate twice as fast", {}, [](Receipt& r) { stretch(r, 0.5); }),
        whole("two slow steps in the window: a checkpoint is saved (B16)", {},
              [](Receipt& r) {
                  delay_from(r, r.warmup + 2, 3 * first_step(r));
                  delay_from(r, r.warmup + 5, 3 * first_step(r));
              }),
        whole("a long first update: compilation with a cold cache (B06)", {},
              [](Receipt& r) { delay_from(r, 1, 20 * first_step(r)); }),
        each("honest drift of the loss, 0.2 % (B11)", {},
             [](UpdateRecord& u) {
                 if (u.loss) {
                     *u.loss *= 1 + 0.002 * std::sin(u.n);
                 }
                 return u.loss.has_value();
             }),
        {"state drifts by a twentieth of an update (B11)",
         {},
         [](Receipt& r, const ReferenceEvidence& e) {
             bool changed = false;
             for (auto& probe : r.probes) {
                 const auto* before = probe_of(e.reference, probe.n - 1);
                 if (before == nullptr) {
                     continue;
                 }
                 int index = 0;
                 for (auto& [name, value] : probe.params) {
                     const auto old = before->params.find(name);
                     if (old == before->params.end() || !std::isfinite(value)) {
                         continue;
                     }
                     value += 0.05 * (index++ % 2 == 0 ? 1 : -1) * (value - old->second);
                     changed = true;
                 }
             }
             return changed;
         }},
        whole("less memory (B18)", {},
              [](Receipt& r) {
                  if (r.memory.peak_gib) {
                      *r.memory.peak_gib *= 0.6;
                  }
              }),
        whole("stopped by the harness after the last update", {},
              [](Receipt& r) {
                  r.execution.stopped = "after_updates";
                  r.execution.exit_code.reset();
                  r.execution.signal = 15;
              }),
        whole("precision not audited", {}, [](Receipt& r) { r.audit.reset(); }),
        whole("a host that held the CPU for a while", {}, [](Receipt& r) { r.execution.cpu_stall_s += 3; }),
    };
}

}  // namespace infrarsi
