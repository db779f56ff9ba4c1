#pragma once
// The conditional checks of a contract, run after the job in the same tree and under the same isolation: the
// evaluation, the resumption from a checkpoint and the user's own tests (DESIGN §7.3 eval_matches, resume_continues,
// user_tests). Internal to trial.

#include "core/trial/agent_run.h"
#include "core/trial/receipt.h"

namespace infrarsi {

// Fills eval, resume and tests of `receipt`, whose series the job's own run has filled. `base` is that run's spec: its
// folder, environment and sandbox hold for every check, its command and hook also for the resumption. Each check has
// its own folder of output under `base.out`/checks. A check that fails, hangs or cannot be started is a result that
// says so. cancelled when `stop` was requested; io when a check's folder cannot be made.
[[nodiscard]] Expected<void> run_checks(const TrialSetup& setup, const AgentSpec& base, const AgentWait& wait,
                                        Receipt& receipt);

// The last number that the output gives for `metric`: `metric=1.5`, `metric: 1.5`, `"metric": 1.5`, `metric 1.5`;
// nothing when it is never stated. A longer name that ends in the metric's is another metric.
[[nodiscard]] std::optional<double> find_metric(std::string_view output, std::string_view metric);

}  // namespace infrarsi
