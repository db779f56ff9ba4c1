#pragma once
// The receipt: the signed record of one execution (DESIGN §2, §7). It holds everything that the verifier needs and
// nothing that the verifier has to trust the candidate for. Times are seconds, memory is GiB per device, updates count
// from 1.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"
#include "core/trial/candidate.h"

namespace infrarsi {

inline constexpr std::string_view kReceiptSchema = "infrarsi-receipt-v1";

struct PhaseTimes {  // seconds within one update, as the hook measured them
    double forward = 0, backward = 0, optimizer = 0, data = 0, other = 0;
};

// One optimizer update, over all ranks. Nothing means that nobody reported it.
struct UpdateRecord {
    int n = 0;                            // 1-based
    double t_s = 0;                       // arrival at the agent, since the start of the job
    std::optional<std::int64_t> tokens;   // summed over ranks
    std::optional<std::int64_t> samples;  // summed over ranks
    std::optional<std::int64_t> seq_len;
    std::string data;            // order-free digest of the update's samples; empty: unknown
    std::optional<double> loss;  // mean over ranks; NaN and infinities are kept
    std::optional<double> grad_norm;
    std::optional<double> lr;
    std::optional<std::int64_t> opt_steps;  // real optimizer steps so far
    std::optional<double> reported_s;       // step time that the job's own log line states
    std::optional<PhaseTimes> phases;       // slowest rank
};

// Projections of the state after update n (DESIGN §7.1): key "rank-independent tensor name" → Σ ±x.
struct StateProbe {
    int n = 0;
    std::map<std::string, double> params, buffers, optimizer;
};

struct DtypeAudit {
    int n = 0;                                                 // the audited update
    std::map<std::string, std::map<std::string, int>> matmul;  // op → dtype → calls
    std::string autocast;                                      // dtype, or empty
};

struct MemoryUse {
    std::optional<double> peak_gib;  // largest device: VmData of a rank on CPU, driver memory on GPU
    std::optional<double> cap_gib;
    std::string source;  // "VmData", "nvidia-smi", "torch.cuda.max_memory_reserved"
};

struct OutOfMemory {
    double in_use_gib = 0, tried_gib = 0;
    double need_gib = 0;  // in use + tried: a lower bound of what the job needs
    std::string line;     // the text that says so
};

// A line of the job's output, or an end of it, that means failure.
struct FailureLine {
    std::string failure_class;  // oom_device, oom_host, collective, compile, numerical, import, traceback, …
    std::string text;
    std::string stream;  // "stdout", "stderr", "harness"
    int line = 0;        // 1-based in that stream; 0: none
    double t_s = 0;
};

struct Execution {
    std::optional<int> exit_code;
    std::optional<int> signal;
    std::string timed_out;  // "", "wall", "silence"
    bool cancelled = false;
    std::string stopped;                      // "", "after_updates"
    double wall_start_s = 0, wall_end_s = 0;  // wall clock, for people and for the clock-skew check
    double duration_s = 0;                    // monotonic
    std::string error;                        // the job could not be started: why
    double cpu_stall_s = 0;                   // other processes held the CPU
    int world = 1;                            // ranks that reported
};

struct IsolationHeld {
    std::string sandbox;  // "bwrap", "none"
    std::string network;  // "inherit", "none"
    bool frozen_readonly = false;
    std::string why;  // why less held than was asked for
};

struct CheckResult {  // an eval, resume or user-test run
    std::string command;
    int exit_code = 0;
    std::optional<double> value;  // the metric, or the relative loss deviation of a resume
    std::string note;
    double duration_s = 0;
};

struct Receipt {
    std::string schema{kReceiptSchema};
    std::string harness;          // version of infrarsi
    std::string campaign, trial;  // ids
    std::string role;             // "reference", "candidate", "promotion-reference", "promotion-candidate"
    Candidate candidate;
    std::string contract_digest;
    std::string tree_digest;      // of the materialised sources
    int updates = 0, warmup = 0;  // asked for
    Execution execution;
    IsolationHeld isolation;
    std::vector<UpdateRecord> series;  // ascending n
    std::string model_digest;
    std::optional<std::int64_t> trainable_params;
    std::map<std::string, std::int64_t> param_dtypes;  // dtype → elements
    std::vector<StateProbe> probes;                    // ascending n
    std::optional<DtypeAudit> audit;
    MemoryUse memory;
    std::optional<OutOfMemory> oom;
    std::vector<FailureLine> failures;
    std::map<std::string, std::string> frozen_before, frozen_after;  // path → SHA-256, or "missing"
    std::vector<std::string> frozen_touched;                         // written to during the run, even if restored
    Settings effective;                    // knob name → value that the job really held, where it could be seen
    std::vector<std::string> ineffective;  // "micro_batch: requested 32, effective 16"
    std::optional<CheckResult> eval, resume;
    std::vector<CheckResult> tests;
    std::map<std::string, std::string> environment;  // fingerprint: cpu, cores, gpu, torch, python, kernel, host digest
    std::vector<int> disturbed;  // updates whose time the harness itself disturbed (audit, state checks)
};

[[nodiscard]] nlohmann::json to_json(const Receipt& receipt);
// invalid_input names the key that is missing or of the wrong type; a wrong schema is `unsupported`.
[[nodiscard]] Expected<Receipt> receipt_from_json(const nlohmann::json& json);

// The file form: {"receipt": {...}, "mac": "…"}: HMAC-SHA256 over the canonical JSON of the receipt.
[[nodiscard]] std::string sign_receipt(const Receipt& receipt, std::string_view key);
// corrupt when there is no MAC or it does not verify; unsupported for another schema. `name` is for the message.
[[nodiscard]] Expected<Receipt> open_receipt(std::string_view text, std::string_view key, const std::string& name);

}  // namespace infrarsi
