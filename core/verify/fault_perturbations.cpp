// Faults of execution, workload and files.

#include "core/verify/perturbation_tools.h"

#include <cmath>
#include <limits>

namespace infrarsi::perturb {

using Id = InvariantId;

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

}  // namespace infrarsi::perturb
