#pragma once
// How breaches change what a run leaves behind, so that the verifier has something to find. Source: SIMULATOR.md §2.3.

#include "core/simulate/answer.h"

namespace infrarsi::sim {

// Hexadecimal digest of a piece of the job: `what` is the update's number, `model` or `frozen|PATH`, `salt` empty or
// the causes, each with a `|` before it.
[[nodiscard]] std::string evidence_digest(const Workload& workload, std::string_view what, std::string_view salt,
                                          std::size_t digits);
inline constexpr std::size_t kDataDigits = 16, kModelDigits = 32, kFrozenDigits = 16;

// Applies `causes` in their order. Numbers are not rounded.
void apply_breaches(const Workload& workload, const std::vector<BreachCause>& causes, Answer& answer);

}  // namespace infrarsi::sim
