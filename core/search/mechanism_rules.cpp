#include "core/search/mechanism_rules.h"

#include <array>
#include <string_view>

namespace infrarsi {

namespace {

struct Entry {
    std::string_view mechanism;  // exact, or a prefix that ends in a dot
    unsigned phases = kEveryPhase;
    double gain = 0;
};

constexpr unsigned kCompute = kMatmul | kAttention | kElementwise;

constexpr std::array kEntries{
    Entry{"batch.micro_batch", kMatmul | kCommunication | kHost, 0.04},
    Entry{"batch.grad_accum", kMatmul | kCommunication | kHost, 0.0},
    Entry{"recompute.", kRecompute, 0.05},
    Entry{"compile.", kAttention | kElementwise | kRecompute | kHost, 0.10},
    Entry{"cudagraph.", kHost, 0.04},
    Entry{"attn.", kAttention, 0.04},
    Entry{"kernel.", kElementwise | kHost, 0.02},
    Entry{"loss.", kElementwise, 0.02},
    Entry{"moe.", kMatmul | kElementwise | kCommunication | kHost, 0.02},
    Entry{"precision.", kMatmul | kElementwise | kAttention, 0.05},
    Entry{"optim.", kOptimizerStep | kCommunication | kHost, 0.01},
    Entry{"offload.optimizer", kOptimizerStep, -0.05},
    Entry{"offload.", kRecompute | kHost, -0.05},
    Entry{"fsdp.", kCommunication, 0.02},
    Entry{"shard.", kCommunication | kHost, 0.0},
    Entry{"parallel.", kMatmul | kCommunication, 0.0},
    Entry{"comm.", kCommunication, 0.02},
    Entry{"nccl.", kCommunication, 0.01},
    Entry{"dataloader.", kDataLoading | kHost, 0.005},
    Entry{"data.", kDataLoading | kHost, 0.005},
    Entry{"memory.", kHost, 0.0},
    Entry{"numerics.", kCompute | kCommunication, -0.03},
    Entry{"log.", kHost, 0.005},
};

}  // namespace

MechanismRule mechanism_rule(const std::string& mechanism) {
    for (const Entry& entry : kEntries) {
        const bool is_prefix = entry.mechanism.back() == '.';
        if (is_prefix ? mechanism.starts_with(entry.mechanism) : mechanism == entry.mechanism) {
            return {entry.phases, entry.gain};
        }
    }
    return {};
}

bool scales_activations(const std::string& mechanism) {
    return mechanism == "batch.micro_batch" || mechanism.starts_with("recompute.");
}

}  // namespace infrarsi
