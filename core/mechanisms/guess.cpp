// Name heuristics: how training scripts outside the known stacks call the common mechanisms.
#include "core/mechanisms/mechanism.h"

namespace infrarsi {
namespace {

struct Guess {
    std::string_view name;
    std::string_view mechanism;
};

// Normalised: lower case, underscores, no leading dashes, the last part of a dotted path.
constexpr Guess kGuesses[] = {
    {"micro_batch_size", "batch.micro_batch"},
    {"micro_batch", "batch.micro_batch"},
    {"microbatch_size", "batch.micro_batch"},
    {"micro_bs", "batch.micro_batch"},
    {"mbs", "batch.micro_batch"},
    {"mb", "batch.micro_batch"},
    {"batch_size", "batch.micro_batch"},
    {"bs", "batch.micro_batch"},
    {"local_batch_size", "batch.micro_batch"},
    {"device_batch_size", "batch.micro_batch"},
    {"per_device_batch_size", "batch.micro_batch"},
    {"per_device_train_batch_size", "batch.micro_batch"},
    {"per_gpu_train_batch_size", "batch.micro_batch"},
    {"batch_size_per_gpu", "batch.micro_batch"},
    {"batch_size_per_device", "batch.micro_batch"},
    {"batch_per_device", "batch.micro_batch"},
    {"train_micro_batch_size_per_gpu", "batch.micro_batch"},
    {"device_train_microbatch_size", "batch.micro_batch"},
    {"grad_accum", "batch.grad_accum"},
    {"grad_accum_steps", "batch.grad_accum"},
    {"grad_acc_steps", "batch.grad_accum"},
    {"grad_acc", "batch.grad_accum"},
    {"gradient_accumulation", "batch.grad_accum"},
    {"gradient_accumulation_steps", "batch.grad_accum"},
    {"accumulate_grad_batches", "batch.grad_accum"},
    {"accumulation_steps", "batch.grad_accum"},
    {"accum_steps", "batch.grad_accum"},
    {"accum", "batch.grad_accum"},
    {"ga_steps", "batch.grad_accum"},
    {"global_batch_size", "batch.global_batch"},
    {"total_batch_size", "batch.global_batch"},
    {"compile", "compile.enable"},
    {"torch_compile", "compile.enable"},
    {"use_compile", "compile.enable"},
    {"compile_model", "compile.enable"},
    {"compile_mode", "compile.mode"},
    {"torch_compile_mode", "compile.mode"},
    {"torch_compile_backend", "compile.backend"},
    {"activation_checkpointing", "recompute.mode"},
    {"activation_checkpoint", "recompute.mode"},
    {"checkpoint_activations", "recompute.mode"},
    {"gradient_checkpointing", "recompute.mode"},
    {"grad_checkpointing", "recompute.mode"},
    {"use_gradient_checkpointing", "recompute.mode"},
    {"grad_checkpoint", "recompute.mode"},
    {"recompute", "recompute.mode"},
    {"remat", "recompute.mode"},
    {"num_workers", "dataloader.workers"},
    {"workers", "dataloader.workers"},
    {"n_workers", "dataloader.workers"},
    {"data_workers", "dataloader.workers"},
    {"loader_workers", "dataloader.workers"},
    {"dataloader_num_workers", "dataloader.workers"},
    {"num_data_workers", "dataloader.workers"},
    {"dataloader_workers", "dataloader.workers"},
    {"pin_memory", "dataloader.pin_memory"},
    {"dataloader_pin_memory", "dataloader.pin_memory"},
    {"prefetch_factor", "dataloader.prefetch"},
    {"dataloader_prefetch_factor", "dataloader.prefetch"},
    {"persistent_workers", "dataloader.persistent_workers"},
    {"dataloader_persistent_workers", "dataloader.persistent_workers"},
    {"threads", "host.omp_threads"},
    {"num_threads", "host.omp_threads"},
    {"n_threads", "host.omp_threads"},
    {"torch_threads", "host.omp_threads"},
    {"cpu_threads", "host.omp_threads"},
    {"omp_num_threads", "host.omp_threads"},
    {"omp_threads", "host.omp_threads"},
    {"mkl_num_threads", "host.omp_threads"},
    {"fused_adamw", "optim.fused"},
    {"fused_adam", "optim.fused"},
    {"fused_optimizer", "optim.fused"},
    {"use_fused_adam", "optim.fused"},
    {"flash_attention", "attn.backend"},
    {"flash_attn", "attn.backend"},
    {"use_flash_attn", "attn.backend"},
    {"use_flash_attention", "attn.backend"},
    {"attn_implementation", "attn.backend"},
    {"tf32", "precision.tf32"},
    {"allow_tf32", "precision.tf32"},
    {"zero_stage", "shard.zero_stage"},
    {"cpu_offload", "offload.optimizer"},
    {"pytorch_cuda_alloc_conf", "memory.cuda_alloc_conf"},
    {"pytorch_alloc_conf", "memory.cuda_alloc_conf"},
    {"cuda_device_max_connections", "env.device_max_connections"},
    {"nccl_min_nchannels", "nccl.min_nchannels"},
    {"nccl_max_nchannels", "nccl.max_nchannels"},
    {"nccl_buffsize", "nccl.buffsize"},
    {"nccl_algo", "nccl.algo"},
    {"nccl_proto", "nccl.proto"},
    {"ddp_bucket_cap_mb", "comm.ddp_bucket_size"},
    {"bucket_cap_mb", "comm.ddp_bucket_size"},
    {"use_liger_kernel", "kernel.liger"},
    {"torch_empty_cache_steps", "memory.empty_cache"},
};

}  // namespace

std::optional<std::string> guess_mechanism(std::string_view name) {
    while (name.starts_with('-')) name.remove_prefix(1);
    std::string normal;
    for (const char c : name)
        normal.push_back(c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    const auto look_up = [](std::string_view text) -> std::optional<std::string> {
        for (const Guess& guess : kGuesses) {
            if (guess.name == text) return std::string(guess.mechanism);
        }
        return std::nullopt;
    };
    if (auto found = look_up(normal)) return found;
    const std::size_t dot = normal.rfind('.');
    return dot == std::string::npos ? std::nullopt : look_up(std::string_view(normal).substr(dot + 1));
}

}  // namespace infrarsi
