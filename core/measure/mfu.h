#pragma once
// Model FLOPs utilisation by a declared formula: MFU = F_update / (N · peak · t), where F_update counts the model's own
// work only (no recomputation, no padding). Every input is kept beside the number, so that it can be disputed (paper
// §3; cheats R05, R06).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace infrarsi {

struct MfuInputs {
    double flops_per_update = 0;       // F_update, whole job
    int devices = 1;                   // N
    std::optional<double> peak_flops;  // dense FLOP/s of one device at the job's precision; nothing: not known
    double step_time_s = 0;            // t, window mean
};

struct Mfu {
    double value = 0;  // 0 … 1; above 1 only when an input is wrong
    MfuInputs inputs;
    std::string formula;  // with the numbers filled in
};

// Nothing when the peak is not known, or an input is not positive.
[[nodiscard]] std::optional<Mfu> mfu(const MfuInputs& inputs);

// F_update of a dense decoder: tokens · (6 · parameters + 12 · layers · width · sequence length), the attention term of
// full (not causal) attention, as in the PaLM paper's appendix. Parameters without the embedding of positions.
struct TransformerShape {
    std::int64_t parameters = 0;
    std::int64_t layers = 0, width = 0, seq_len = 0;  // 0: the attention term is left out
};
[[nodiscard]] double transformer_flops(const TransformerShape& shape, std::int64_t tokens_per_update);

// Dense peak FLOP/s of a device by the name that its driver states ("NVIDIA H100 80GB HBM3") and dtype ("bf16", "fp16",
// "tf32", "fp32", "fp8"), from the vendors' data sheets, without sparsity. Nothing for a device or dtype that is not
// known; a contract may then declare the peak.
[[nodiscard]] std::optional<double> peak_flops(std::string_view device_name, std::string_view dtype);

}  // namespace infrarsi
