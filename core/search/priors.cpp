#include "core/search/priors.h"

#include <cmath>
#include <map>

#include "core/search/features.h"

namespace infrarsi {

namespace {

constexpr double kSigmaFloor = 0.05;     // a setting rated 0 stays within 2σ of a 10 % gain
constexpr double kSigmaPerMean = 0.5;    // no rule is surer than ± half of what it claims
constexpr double kSigmaPerShare = 0.3;   // of the share of the phases touched
constexpr double kGibSigmaFloor = 0.03;  // of the reference's peak

enum class Scale {
    level,    // by how far the value switches the mechanism on
    doubling  // by log2(value/reference); memory in proportion
};

// Gain for switching on, or per doubling; memory as a share of the reference's peak, for switching on or for +100 %.
struct Rule {
    std::string_view mechanism;  // exact, or a prefix that ends in a dot
    Scale scale = Scale::level;
    double gain = 0, sigma = 0;
    double memory = 0, memory_sigma = 0;
    unsigned phases = 0;
};

constexpr unsigned kModel = kForward | kBackward;
constexpr unsigned kStep = kForward | kBackward | kOptimizer | kOther;

// The first match counts, so exact names stand before prefixes.
constexpr std::array kRules{
    // Larger matrices and fewer launches per token, while there is room.
    Rule{"batch.micro_batch", Scale::doubling, 0.06, 0.10, 0.30, 0.20, kStep},
    // Follows from the micro-batch; alone it changes nothing that is allowed.
    Rule{"batch.grad_accum", Scale::doubling, 0.0, 0.02, 0.0, 0.01, kStep},
    // Recomputing costs up to a third of the backward pass and buys activations.
    Rule{"recompute.mode", Scale::level, -0.20, 0.12, -0.40, 0.20, kModel},
    Rule{"recompute.layers", Scale::doubling, -0.05, 0.08, -0.10, 0.10, kModel},
    Rule{"recompute.", Scale::level, -0.05, 0.10, -0.10, 0.10, kModel},
    Rule{"compile.enable", Scale::level, 0.15, 0.15, 0.0, 0.08, kModel},
    Rule{"compile.", Scale::level, 0.02, 0.08, 0.03, 0.08, kModel},
    Rule{"cudagraph.", Scale::level, 0.05, 0.10, 0.05, 0.05, kModel},
    Rule{"attn.", Scale::level, 0.10, 0.12, -0.08, 0.10, kModel},
    Rule{"kernel.liger", Scale::level, 0.04, 0.10, -0.10, 0.10, kModel},
    Rule{"kernel.", Scale::level, 0.03, 0.06, -0.02, 0.04, kModel},
    Rule{"loss.", Scale::level, 0.03, 0.06, -0.05, 0.08, kModel},
    Rule{"moe.", Scale::level, 0.04, 0.12, 0.0, 0.06, kModel | kOther},
    Rule{"precision.mixed", Scale::level, 0.25, 0.25, -0.15, 0.15, kModel},
    Rule{"precision.tf32", Scale::level, 0.10, 0.15, 0.0, 0.02, kModel},
    Rule{"precision.fp8", Scale::level, 0.08, 0.15, 0.0, 0.10, kModel},
    Rule{"precision.", Scale::level, 0.02, 0.08, -0.03, 0.08, kModel | kOptimizer | kOther},
    Rule{"optim.", Scale::level, 0.03, 0.06, 0.0, 0.05, kOptimizer},
    Rule{"offload.", Scale::level, -0.25, 0.20, -0.25, 0.15, kStep},
    Rule{"shard.", Scale::level, -0.03, 0.12, -0.15, 0.15, kStep},
    Rule{"parallel.", Scale::doubling, -0.05, 0.15, -0.15, 0.20, kStep},
    Rule{"comm.", Scale::level, 0.02, 0.06, 0.02, 0.04, kOther | kBackward},
    Rule{"nccl.", Scale::level, 0.01, 0.05, 0.0, 0.02, kOther},
    Rule{"env.", Scale::level, 0.01, 0.05, 0.0, 0.02, kOther | kBackward},
    Rule{"torch.", Scale::level, 0.0, 0.03, 0.0, 0.03, kOther},
    Rule{"dataloader.workers", Scale::doubling, 0.03, 0.10, 0.0, 0.01, kData},
    Rule{"dataloader.", Scale::level, 0.01, 0.05, 0.0, 0.01, kData},
    Rule{"data.", Scale::level, 0.01, 0.05, 0.0, 0.01, kData},
    // On a CPU job the threads do the work itself, so no phase bounds them.
    Rule{"host.omp_threads", Scale::doubling, 0.10, 0.20, 0.0, 0.01, 0},
    Rule{"host.", Scale::level, 0.01, 0.05, 0.0, 0.02, 0},
    Rule{"memory.", Scale::level, 0.0, 0.05, -0.04, 0.05, 0},
    Rule{"numerics.", Scale::level, -0.03, 0.06, 0.0, 0.02, kModel},
    Rule{"log.", Scale::doubling, 0.01, 0.04, 0.0, 0.01, 0},
};

// A mechanism nobody knows: no opinion, wide enough to be worth a look.
constexpr Rule kUnknown{"", Scale::level, 0.0, 0.10, 0.0, 0.08, 0};

const Rule& rule_of(const std::string& mechanism) {
    for (const Rule& rule : kRules) {
        const bool is_prefix = rule.mechanism.back() == '.';
        if (is_prefix ? mechanism.starts_with(rule.mechanism) : mechanism == rule.mechanism) return rule;
    }
    return kUnknown;
}

double share_of(unsigned phases, const PhaseShares& shares) {
    const std::vector<double> table = share_table(shares);
    double sum = 0;
    for (std::size_t bit = 0; bit < table.size(); ++bit) sum += (phases >> bit & 1U) != 0 ? table[bit] : 0;
    return sum;
}

double bounded_sigma(double sigma, double mean, unsigned phases, const PhaseShares& shares) {
    return std::max({sigma, kSigmaFloor, kSigmaPerMean * std::abs(mean), kSigmaPerShare * share_of(phases, shares)});
}

}  // namespace

PriorScale prior_scale(const SearchProblem& problem) {
    const double memory = problem.reference_gib > 0  ? problem.reference_gib
                          : problem.capacity_gib > 0 ? problem.capacity_gib
                                                     : 1;
    return {.memory_gib = memory, .phases = problem.phases};
}

std::vector<double> share_table(const PhaseShares& shares) {
    if (!shares.known) return {};
    return {shares.forward, shares.backward, shares.optimizer, shares.data, shares.other};
}

std::string canonical_mechanism(const std::string& mechanism) {
    static const std::map<std::string, std::string> kShort{
        {"micro_batch", "batch.micro_batch"},
        {"grad_accum", "batch.grad_accum"},
        {"compile", "compile.enable"},
        {"activation_recompute", "recompute.mode"},
        {"recompute", "recompute.mode"},
        {"activation_checkpointing", "recompute.mode"},
        {"attention", "attn.backend"},
        {"attention_backend", "attn.backend"},
        {"threads", "host.omp_threads"},
        {"omp_threads", "host.omp_threads"},
        {"workers", "dataloader.workers"},
        {"dataloader_workers", "dataloader.workers"},
        {"pin_memory", "dataloader.pin_memory"},
        {"fused_optimizer", "optim.fused"},
        {"mixed_precision", "precision.mixed"},
        {"tf32", "precision.tf32"},
        {"fp8", "precision.fp8"},
        {"allocator", "memory.cuda_alloc_conf"},
    };
    const auto found = kShort.find(mechanism);
    return found == kShort.end() ? mechanism : found->second;
}

double switch_level(const Value& value) {
    if (is_null(value)) return 0;
    if (const auto* text = std::get_if<std::string>(&value)) {
        static const std::set<std::string, std::less<>> kOff{
            "",      "none",    "off",      "no",    "false", "disabled", "0",    "never",  "default",
            "eager", "unfused", "for-loop", "local", "math",  "naive",    "fp32", "float32"};
        static const std::set<std::string, std::less<>> kHalf{"selective", "partial", "foreach", "block", "blocks"};
        if (kOff.contains(*text)) return 0;
        return kHalf.contains(*text) ? 0.5 : 1;
    }
    return to_number(value).value_or(0) != 0 ? 1 : 0;
}

SettingPrior setting_prior(const Knob& knob, const Value& value, const PriorScale& scale) {
    const Rule& rule = rule_of(canonical_mechanism(knob.mechanism));
    const double level = switch_level(value) - switch_level(knob.reference);
    double gain_by = level;
    double memory_by = level;
    if (const auto ratio = scale_ratio(knob, value); rule.scale == Scale::doubling && ratio) {
        gain_by = std::log2(*ratio);
        memory_by = *ratio - 1;
    }
    // Two values on the same level (two attention kernels, two thread counts) differ by something, of unknown sign.
    const double reach = std::max(std::abs(gain_by), 0.5);
    const double memory_reach = std::max(std::abs(memory_by), 0.5);
    SettingPrior prior;
    prior.log_gain = rule.gain * gain_by;
    prior.sigma = bounded_sigma(rule.sigma * std::sqrt(reach), prior.log_gain, rule.phases, scale.phases);
    prior.gib = rule.memory * memory_by * scale.memory_gib;
    prior.gib_sigma = std::max(rule.memory_sigma * memory_reach, kGibSigmaFloor) * scale.memory_gib;
    prior.phases = rule.phases;
    return prior;
}

bool is_user_patch(const Patch& patch) {
    return patch.origin == "user";
}

SettingPrior patch_prior(const Patch& patch, const PriorScale& scale) {
    SettingPrior prior;
    prior.log_gain = is_user_patch(patch) ? 0.05 : patch.origin.starts_with("recipe:") ? 0.04 : 0.02;
    prior.sigma = 0.08;
    prior.gib = 0;
    prior.gib_sigma = 0.05 * scale.memory_gib;
    return prior;
}

}  // namespace infrarsi
