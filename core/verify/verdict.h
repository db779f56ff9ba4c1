#pragma once
// The verdict on one execution: per invariant a status and its evidence (paper Table 8, DESIGN §7.3). The verifier is a
// pure function (receipt, reference, rules) → verdict; it reads opened receipts only and is versioned.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "core/contract/contract.h"
#include "core/measure/noise.h"
#include "core/trial/receipt.h"

namespace infrarsi {

inline constexpr std::string_view kVerifierVersion = "1";

enum class InvariantId {
    completes,
    no_errors,
    memory_cap,  // L1 execution
    same_workload,
    same_data,
    same_model,
    frozen_files,     // L2 workload
    optimizer_steps,  // L3 schedule
    loss_within_tolerance,
    grad_norm_within_tol,
    eval_matches,
    precision,  // L4 numerical
    timing_consistent,
    speed_reproduces,
    resume_continues,
    user_tests  // L5 timing and re-run
};
inline constexpr int kInvariantCount = 16;

enum class InvariantMode { always, conditional, informational, promotion };
enum class Status { pass, fail, unchecked, reported };

struct InvariantResult {
    InvariantId id{};
    Status status = Status::unchecked;
    std::string evidence;  // what was compared, with numbers
    std::string remedy;    // where unchecked: what would make it checkable
};

struct Verdict {
    std::string verifier{kVerifierVersion};
    std::vector<InvariantResult> results;  // all 16, in order
    bool valid = false;                    // no fail, and no required item unchecked
    std::string reason;                    // the first rejecting item in words; empty when valid
    bool for_promotion = false;            // judged with a fresh re-run; then an undecided speed_reproduces rejects
    [[nodiscard]] const InvariantResult& operator[](InvariantId id) const {
        return results[static_cast<std::size_t>(id)];
    }
    // Items that reject: failed, or unchecked though required.
    [[nodiscard]] std::vector<InvariantId> rejecting(const InvariantRules& rules) const;
};

// What a candidate is compared with.
struct ReferenceEvidence {
    Receipt reference;             // the root reference
    std::vector<Receipt> repeats;  // other runs of it
    NoiseFloor noise;
};

[[nodiscard]] Verdict judge(const Receipt& candidate, const ReferenceEvidence& reference, const InvariantRules& rules);

// As `judge`, with the promotion gate filled in from a fresh re-run.
[[nodiscard]] Verdict judge_promotion(const Receipt& candidate, const ReferenceEvidence& reference,
                                      const InvariantRules& rules, const GainEstimate& gain);

[[nodiscard]] std::string_view to_string(InvariantId id);
[[nodiscard]] std::string_view to_string(Status status);
[[nodiscard]] int layer_of(InvariantId id);  // 1 … 5
[[nodiscard]] InvariantMode mode_of(InvariantId id);
[[nodiscard]] std::optional<InvariantId> invariant_from_string(std::string_view name);

[[nodiscard]] nlohmann::json to_json(const Verdict& verdict);
[[nodiscard]] Expected<Verdict> verdict_from_json(const nlohmann::json& json);

}  // namespace infrarsi
