#pragma once
// What the perturbations of the test matrix are made of.

#include "core/verify/perturbations.h"

namespace infrarsi::perturb {

// A change of the whole receipt, always possible.
[[nodiscard]] Perturbation whole(std::string name, std::optional<InvariantId> expected,
                                 std::function<void(Receipt&)> change);
// A change of each update; false from `change` means that the update lacks the field.
[[nodiscard]] Perturbation each(std::string name, std::optional<InvariantId> expected,
                                std::function<bool(UpdateRecord&)> change);
// A change of one update in the middle of the window.
[[nodiscard]] Perturbation one(std::string name, std::optional<InvariantId> expected,
                               std::function<bool(UpdateRecord&)> change);

[[nodiscard]] FailureLine line_at(const char* failure_class, const char* text, double t_s);
[[nodiscard]] double mid_time(const Receipt& receipt);    // arrival of the middle update
[[nodiscard]] double first_step(const Receipt& receipt);  // seconds
// Moves all arrivals so that each step takes `factor` of its time.
void stretch(Receipt& receipt, double factor);
// Lets update n and all later ones arrive `seconds` later.
void delay_from(Receipt& receipt, int n, double seconds);
[[nodiscard]] const StateProbe* probe_of(const Receipt& receipt, int n);

[[nodiscard]] std::vector<Perturbation> execution_faults();
[[nodiscard]] std::vector<Perturbation> workload_faults();
[[nodiscard]] std::vector<Perturbation> schedule_faults();
[[nodiscard]] std::vector<Perturbation> numerical_faults();
[[nodiscard]] std::vector<Perturbation> timing_faults();

}  // namespace infrarsi::perturb
