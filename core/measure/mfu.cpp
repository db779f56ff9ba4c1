#include "core/measure/mfu.h"

#include <fmt/format.h>

#include <cctype>

namespace infrarsi {
namespace {

struct DevicePeak {
    std::string_view name;         // a part of the driver's name; the first that matches counts
    double bf16, tf32, fp32, fp8;  // dense TFLOP/s; 0: the device has no such unit
};

// NVIDIA data sheets, dense figures (half of those "with sparsity"). PCIe cards come before the SXM name that they
// contain.
constexpr DevicePeak kPeaks[] = {
    {"H100 PCIe", 756, 378, 51, 1513}, {"H100 NVL", 835, 418, 60, 1671},       {"H100", 989, 494, 67, 1979},
    {"H800", 989, 494, 67, 1979},      {"H200", 989, 494, 67, 1979},           {"GH200", 989, 494, 67, 1979},
    {"B200", 2250, 1125, 75, 4500},    {"GB200", 2500, 1250, 80, 5000},        {"A100", 312, 156, 19.5, 0},
    {"A800", 312, 156, 19.5, 0},       {"L40S", 362, 183, 91.6, 733},          {"L4", 121, 60, 30.3, 242},
    {"A10G", 70, 35, 31.2, 0},         {"RTX 4090", 165.2, 82.6, 82.6, 330.3},
};

bool is_alnum(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// "L4" is not in "NVIDIA L40", nor "H200" in "GH200".
bool names(std::string_view device, std::string_view word) {
    const auto at = device.find(word);
    if (at == std::string_view::npos || (at > 0 && is_alnum(device[at - 1]))) {
        return false;
    }
    const auto end = at + word.size();
    return end == device.size() || !is_alnum(device[end]);
}

}  // namespace

std::optional<Mfu> mfu(const MfuInputs& inputs) {
    if (!inputs.peak_flops || *inputs.peak_flops <= 0 || inputs.flops_per_update <= 0 || inputs.devices <= 0 ||
        inputs.step_time_s <= 0) {
        return std::nullopt;
    }
    Mfu result;
    result.inputs = inputs;
    result.value = inputs.flops_per_update / (inputs.devices * *inputs.peak_flops * inputs.step_time_s);
    result.formula = fmt::format("{:.4g} FLOP / ({} × {:.4g} FLOP/s × {:.4g} s) = {:.2f} %", inputs.flops_per_update,
                                 inputs.devices, *inputs.peak_flops, inputs.step_time_s, 100 * result.value);
    return result;
}

double transformer_flops(const TransformerShape& shape, std::int64_t tokens_per_update) {
    const double attention = 12.0 * static_cast<double>(shape.layers) * static_cast<double>(shape.width) *
                             static_cast<double>(shape.seq_len);
    return static_cast<double>(tokens_per_update) * (6.0 * static_cast<double>(shape.parameters) + attention);
}

std::optional<double> peak_flops(std::string_view device_name, std::string_view dtype) {
    for (const auto& device : kPeaks) {
        if (!names(device_name, device.name)) {
            continue;
        }
        const double tera = dtype == "bf16" || dtype == "fp16" ? device.bf16
                            : dtype == "tf32"                  ? device.tf32
                            : dtype == "fp32"                  ? device.fp32
                            : dtype == "fp8"                   ? device.fp8
                                                               : 0;
        return tera > 0 ? std::optional(tera * 1e12) : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace infrarsi
