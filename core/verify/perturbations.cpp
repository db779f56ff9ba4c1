#include "core/verify/perturbations.h"

#include <cmath>

#include "core/verify/perturbation_tools.h"

namespace infrarsi {

using namespace perturb;

namespace {

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
