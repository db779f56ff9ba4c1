#pragma once
// The knobs of a job with their legal values, and how long a trial is: part of init.

#include "core/campaign/init.h"
#include "core/repo/launch_script.h"
#include "core/repo/python_options.h"

namespace infrarsi {

// What the drafting of knobs reads.
struct KnobSources {
    const LaunchPlan& plan;
    const std::vector<PythonOption>& options;
    const HardwareProbe& hardware;
    const MechanismTable& mechanisms;
    std::map<std::string, std::string> configs;  // path → text of the configuration files that the launch line names
    std::map<std::string, Value> overrides;      // globals that a nanoGPT-like config file sets
};

[[nodiscard]] Stack detect_stack(const LaunchPlan& plan, const PythonClosure& closure);

// Fills knobs, constraints and their comments.
void draft_knobs(Draft& draft, const KnobSources& sources);

// launch.updates and launch.warmup from the job's own number of updates.
void draft_window(Draft& draft, const KnobSources& sources);

}  // namespace infrarsi
