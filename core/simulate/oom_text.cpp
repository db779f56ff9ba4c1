#include "core/simulate/oom_text.h"

#include <cmath>

namespace infrarsi::sim {

namespace {

using Hundredths = std::int64_t;  // of a GiB: what the text can print, so that its sums hold

Hundredths floor_of(double number) {
    return static_cast<Hundredths>(std::floor(number));
}

std::string size_text(Hundredths size) {
    if (size == 0) return "0 bytes";
    if (size <= 100) return fmt::format("{:.2f} MiB", static_cast<double>(size) * 10.24);
    return fmt::format("{:.2f} GiB", static_cast<double>(size) / 100);
}

}  // namespace

std::string out_of_memory_text(const Workload& workload, double memory_gib, RandomStream& luck) {
    const Device& device = workload.device;
    const double low = workload.memory.oom_request_low;
    const double request_gib = device.capacity_gib * (low + (workload.memory.oom_request_high - low) * luck.uniform());
    const double need_gib = std::min(memory_gib, device.capacity_gib + request_gib * luck.uniform());
    const Hundredths capacity = std::llround(100 * device.capacity_gib);
    const Hundredths need = std::max(capacity + 1, floor_of(100 * need_gib));
    const Hundredths tried = std::max<Hundredths>(1, floor_of(100 * request_gib));
    const Hundredths in_use = need - tried;
    const Hundredths unallocated = 10 + floor_of(device.capacity_gib * luck.uniform());
    const Hundredths allocated = in_use - std::llround(100 * device.context_gib) - unallocated;
    const auto rank = static_cast<std::int64_t>(std::floor(device.count * luck.uniform()));
    return fmt::format(
        "[rank{}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU {} has a total capacity of {} "
        "of which {} is free. Including non-PyTorch memory, this process has {} memory in use. Of the allocated memory "
        "{} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated. If reserved but unallocated memory "
        "is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        rank, size_text(tried), rank % (device.count / device.nodes), size_text(capacity), size_text(capacity - in_use),
        size_text(in_use), size_text(allocated), size_text(unallocated));
}

}  // namespace infrarsi::sim
