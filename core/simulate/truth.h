#pragma once
// What a candidate really does to the simulated job, free of noise: time, memory, how it ends and what it breaches.
// Nothing of it is ever shown to a strategy. Source: SIMULATOR.md §3, keys §5.2.

#include <string>
#include <vector>

#include "core/simulate/workload.h"

namespace infrarsi::sim {

// One value a knob and a set of patches, by index in the workload.
struct Candidate {
    std::vector<int> values;    // one a knob
    std::uint64_t patches = 0;  // bit i: patch i

    [[nodiscard]] bool has_patch(int patch) const { return (patches >> patch & 1U) != 0; }
    void add_patch(int patch) { patches |= std::uint64_t{1} << patch; }

    bool operator==(const Candidate&) const = default;
};

// How the process ends.
enum class Outcome { completed, numeric, crash, hang, oom };
[[nodiscard]] std::string_view to_string(Outcome outcome);

// What a table calls the candidate. It can be delivered exactly when it is ok.
enum class Kind { ok, oom, crash, hang, numeric, contract, patch_failed };
[[nodiscard]] std::string_view to_string(Kind kind);

struct Truth {
    double rel_time = 1;    // of an update, slow zone of memory included; the true speed-up is 1 / rel_time
    PerPhase phases{};      // without the slow zone
    double memory_gib = 0;  // what it needs, also above the capacity
    Outcome outcome = Outcome::completed;
    Kind kind = Kind::ok;
    int conflict = -1;          // the one that ends the process, if any
    double first_update_s = 0;  // on top of the first update
};

// `candidate` has a value for each knob. Thread-safe; a fraction of a microsecond.
[[nodiscard]] Truth truth(const Workload& workload, const Candidate& candidate);

// Where memory makes an update slow: from this much, in GiB, to the capacity.
[[nodiscard]] double slow_from_gib(const Workload& workload);

// Something that a candidate breaches, and what salts its digests: `knob=value`, `conflict n` or the patch's id.
struct BreachCause {
    const Breach* breach = nullptr;  // into the workload
    std::string cause;
};

// In the order in which they change the evidence: illegal values by knob, contract conflicts, hacks.
[[nodiscard]] std::vector<BreachCause> breaches(const Workload& workload, const Candidate& candidate);

[[nodiscard]] bool holds(const Condition& condition, const Candidate& candidate);

// What the patch does to each phase among the candidate's settings, whether or not the candidate has it.
[[nodiscard]] PerPhase patch_factors(const Patch& patch, const Candidate& candidate);

[[nodiscard]] Candidate reference_candidate(const Workload& workload);

// Knobs that are left out keep their reference value. invalid_input names what is no knob, no value or no patch, or a
// patch that is named twice.
[[nodiscard]] Expected<Candidate> candidate_from_names(const Workload& workload, const Settings& settings,
                                                       const std::vector<std::string>& patches);
// Settings that differ from the reference.
[[nodiscard]] Settings settings_of(const Workload& workload, const Candidate& candidate);
[[nodiscard]] std::vector<std::string> patches_of(const Workload& workload, const Candidate& candidate);

// The text that names the candidate's random streams: `compile=true,recompute="none";fused_rope`; the reference is `;`.
[[nodiscard]] std::string candidate_key(const Workload& workload, const Candidate& candidate);

}  // namespace infrarsi::sim
