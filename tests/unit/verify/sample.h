#pragma once
// Hand-made receipts for tests of the verifier: an honest candidate and its reference.

#include "core/verify/verdict.h"

namespace infrarsi::sample {

inline constexpr int kUpdates = 30, kWarmup = 10, kTensors = 40;

// The state of tensor `index` after update n: a random walk whose last steps are all of about size 1.
inline double state(int index, int n) {
    double value = index;
    for (int i = 1; i <= n; ++i) {
        value += std::sin(index * 7.13 + i * 3.7) + (index % 2 == 0 ? 0.4 : -0.4);
    }
    return value;
}

inline StateProbe probe(int n) {
    StateProbe result;
    result.n = n;
    for (int i = 0; i < kTensors; ++i) {
        const auto name = fmt::format("blocks.{}.weight", i);
        result.params[name] = state(i, n);
        result.optimizer[name + ".exp_avg"] = state(i + 100, n);
        result.optimizer[name + ".step"] = n;
    }
    result.buffers["mask"] = -std::numeric_limits<double>::infinity();
    result.buffers["router.bias"] = state(500, n);
    return result;
}

// Steps of `seconds`; the job says `seconds` − 2 ms of its own.
inline Receipt receipt(double seconds = 1.0) {
    Receipt r;
    r.harness = "test";
    r.role = "candidate";
    r.updates = kUpdates;
    r.warmup = kWarmup;
    r.execution.exit_code = 0;
    double at = 5;
    for (int n = 1; n <= kUpdates; ++n) {
        at += seconds;
        UpdateRecord u;
        u.n = n;
        u.t_s = at;
        u.tokens = 4096;
        u.samples = 8;
        u.seq_len = 512;
        u.data = fmt::format("{:016x}", n * 7919);
        u.loss = 4.0 - 0.05 * n + 0.02 * std::sin(n);
        u.grad_norm = 1.5 + 0.1 * std::cos(n);
        u.lr = 1e-3 * std::min(1.0, n / 5.0);
        u.opt_steps = n;
        u.reported_s = seconds - 0.002;
        r.series.push_back(u);
    }
    r.execution.duration_s = at + 1;
    r.execution.wall_start_s = 1000;
    r.execution.wall_end_s = 1000 + r.execution.duration_s;
    r.model_digest = std::string(64, 'a');
    r.trainable_params = 12345;
    r.param_dtypes["float32"] = 12345;
    for (const int n : {4, 5, 29, 30}) {
        r.probes.push_back(probe(n));
    }
    r.audit = DtypeAudit{7, {{"mm", {{"float32", 24}}}}, ""};
    r.memory = {0.9, 1.2, "VmData"};
    r.frozen_before["loss.py"] = r.frozen_after["loss.py"] = std::string(64, '1');
    return r;
}

inline ReferenceEvidence evidence() {
    ReferenceEvidence e;
    e.reference = receipt(1.2);
    e.reference.role = "reference";
    e.repeats = {receipt(1.19)};
    e.noise.sigma_pair = 0.01;
    e.noise.degrees = 2;
    return e;
}

}  // namespace infrarsi::sample
