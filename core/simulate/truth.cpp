#include "core/simulate/truth.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/text/nearest.h"

namespace infrarsi::sim {

namespace {

void multiply(PerPhase& phases, const PerPhase& factors) {
    for (std::size_t p = 0; p < kPhaseCount; ++p) phases[p] *= factors[p];
}

const KnobValue& chosen(const Workload& workload, const Candidate& candidate, std::size_t knob) {
    return workload.knobs[knob].values[static_cast<std::size_t>(candidate.values[knob])];
}

void apply_patch(const Patch& patch, const Candidate& candidate, Truth& result) {
    result.memory_gib += patch.memory_gib;
    if (!holds(patch.requirements, candidate)) return;
    result.first_update_s += patch.first_update_s;
    multiply(result.phases, patch_factors(patch, candidate));
}

double thrash(const Workload& workload, double memory_gib) {
    const double low = slow_from_gib(workload);
    const double capacity = workload.device.capacity_gib;
    if (!(low < memory_gib && memory_gib <= capacity)) return 1;
    return 1 + workload.memory.thrash_slowdown * (memory_gib - low) / (capacity - low);
}

Outcome outcome_of(Conflict::Kind kind) {
    switch (kind) {
        case Conflict::Kind::hang: return Outcome::hang;
        case Conflict::Kind::numeric: return Outcome::numeric;
        default: return Outcome::crash;
    }
}

Kind kind_of(Conflict::Kind kind) {
    switch (kind) {
        case Conflict::Kind::crash: return Kind::crash;
        case Conflict::Kind::hang: return Kind::hang;
        case Conflict::Kind::numeric: return Kind::numeric;
        case Conflict::Kind::contract: return Kind::contract;
    }
    return Kind::crash;
}

// The first conflict that ends the process decides its outcome, the first of any kind its label.
void judge(const Workload& workload, const Candidate& candidate, bool is_legal, Truth& result) {
    bool has_hack = false;
    for (std::size_t i = 0; i < workload.patches.size(); ++i) {
        has_hack = has_hack || (workload.patches[i].is_hack && candidate.has_patch(static_cast<int>(i)));
    }
    std::optional<Kind> label;
    if (!is_legal) label = Kind::contract;
    for (std::size_t i = 0; i < workload.conflicts.size(); ++i) {
        const Conflict& conflict = workload.conflicts[i];
        if (!holds(conflict.when, candidate)) continue;
        if (!label) label = kind_of(conflict.kind);
        if (conflict.kind == Conflict::Kind::contract) continue;
        result.conflict = static_cast<int>(i);
        break;
    }
    const bool fits = result.memory_gib <= workload.device.capacity_gib;
    if (!label && has_hack) label = Kind::contract;
    result.kind = label.value_or(fits ? Kind::ok : Kind::oom);
    if (result.conflict >= 0) {
        result.outcome = outcome_of(workload.conflicts[static_cast<std::size_t>(result.conflict)].kind);
    } else {
        result.outcome = fits ? Outcome::completed : Outcome::oom;
    }
}

}  // namespace

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::completed: return "completed";
        case Outcome::numeric: return "numeric";
        case Outcome::crash: return "crash";
        case Outcome::hang: return "hang";
        case Outcome::oom: return "oom";
    }
    return "";
}

std::string_view to_string(Kind kind) {
    switch (kind) {
        case Kind::ok: return "ok";
        case Kind::oom: return "oom";
        case Kind::crash: return "crash";
        case Kind::hang: return "hang";
        case Kind::numeric: return "numeric";
        case Kind::contract: return "contract";
        case Kind::patch_failed: return "patch_failed";
    }
    return "";
}

bool holds(const Condition& condition, const Candidate& candidate) {
    for (const Setting& setting : condition) {
        if (candidate.values[static_cast<std::size_t>(setting.knob)] != setting.value) return false;
    }
    return true;
}

double slow_from_gib(const Workload& workload) {
    return workload.memory.thrash_from * workload.device.capacity_gib;
}

Truth truth(const Workload& workload, const Candidate& candidate) {
    INFRARSI_CHECK(candidate.values.size() == workload.knobs.size(), "a candidate has a value for each knob");
    Truth result;
    result.phases = workload.shares;
    result.memory_gib = workload.memory.base_gib;
    double activation = 1;
    bool is_legal = true;
    for (std::size_t k = 0; k < workload.knobs.size(); ++k) {
        const KnobValue& value = chosen(workload, candidate, k);
        multiply(result.phases, value.phases);
        result.memory_gib += value.memory_gib;
        activation *= value.activation_factor;
        result.first_update_s += value.first_update_s;
        is_legal = is_legal && value.is_legal;
    }
    for (const Interaction& interaction : workload.interactions) {
        if (!holds(interaction.when, candidate)) continue;
        multiply(result.phases, interaction.phases);
        result.memory_gib += interaction.memory_gib;
    }
    for (std::size_t i = 0; i < workload.patches.size(); ++i) {
        if (candidate.has_patch(static_cast<int>(i))) apply_patch(workload.patches[i], candidate, result);
    }
    result.memory_gib += workload.memory.activation_gib * activation;
    double sum = 0;
    for (const double phase : result.phases) sum += phase;
    result.rel_time = sum * thrash(workload, result.memory_gib);
    judge(workload, candidate, is_legal, result);
    return result;
}

std::vector<BreachCause> breaches(const Workload& workload, const Candidate& candidate) {
    std::vector<BreachCause> result;
    for (std::size_t k = 0; k < workload.knobs.size(); ++k) {
        const KnobValue& value = chosen(workload, candidate, k);
        if (value.breach) result.push_back({&*value.breach, value.text});
    }
    for (std::size_t i = 0; i < workload.conflicts.size(); ++i) {
        const Conflict& conflict = workload.conflicts[i];
        if (conflict.breach && holds(conflict.when, candidate)) {
            result.push_back({&*conflict.breach, fmt::format("conflict {}", i)});
        }
    }
    for (std::size_t i = 0; i < workload.patches.size(); ++i) {
        const Patch& patch = workload.patches[i];
        if (patch.breach && candidate.has_patch(static_cast<int>(i))) result.push_back({&*patch.breach, patch.id});
    }
    return result;
}

PerPhase patch_factors(const Patch& patch, const Candidate& candidate) {
    if (!holds(patch.requirements, candidate)) return kNoEffect;
    double exponent = 1;
    for (const Attenuation& attenuation : patch.attenuations) {
        if (holds(attenuation.when, candidate)) exponent *= attenuation.exponent;
    }
    if (exponent == 1) return patch.phases;
    PerPhase factors = patch.phases;
    for (double& factor : factors) {
        if (factor != 1) factor = std::pow(factor, exponent);
    }
    return factors;
}

Candidate reference_candidate(const Workload& workload) {
    Candidate candidate;
    for (const Knob& knob : workload.knobs) candidate.values.push_back(knob.reference);
    return candidate;
}

Expected<Candidate> candidate_from_names(const Workload& workload, const Settings& settings,
                                         const std::vector<std::string>& patches) {
    Candidate candidate = reference_candidate(workload);
    for (const auto& [name, value] : settings) {
        const auto index = workload.find_knob(name);
        if (!index) {
            std::vector<std::string> names;
            for (const Knob& knob : workload.knobs) names.push_back(knob.name);
            return fail(ErrorKind::invalid_input, "there is no knob {}{}", name, did_you_mean(name, names));
        }
        const Knob& knob = workload.knobs[static_cast<std::size_t>(*index)];
        const auto found = find_value(knob, value);
        if (!found) {
            std::vector<std::string> known;
            for (const KnobValue& each : knob.values) known.push_back(canonical_json(to_json(each.value)));
            return fail(ErrorKind::invalid_input, "{} has no value {}; it has {}", name, canonical_json(to_json(value)),
                        fmt::join(known, ", "));
        }
        candidate.values[static_cast<std::size_t>(*index)] = *found;
    }
    for (const std::string& id : patches) {
        const auto index = workload.find_patch(id);
        if (!index) {
            std::vector<std::string> ids;
            for (const Patch& patch : workload.patches) ids.push_back(patch.id);
            return fail(ErrorKind::invalid_input, "there is no patch {}{}", id, did_you_mean(id, ids));
        }
        if (candidate.has_patch(*index)) return fail(ErrorKind::invalid_input, "the patch {} is named twice", id);
        candidate.add_patch(*index);
    }
    return candidate;
}

Settings settings_of(const Workload& workload, const Candidate& candidate) {
    Settings settings;
    for (std::size_t k = 0; k < workload.knobs.size(); ++k) {
        if (candidate.values[k] == workload.knobs[k].reference) continue;
        settings[workload.knobs[k].name] = chosen(workload, candidate, k).value;
    }
    return settings;
}

std::vector<std::string> patches_of(const Workload& workload, const Candidate& candidate) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < workload.patches.size(); ++i) {
        if (candidate.has_patch(static_cast<int>(i))) ids.push_back(workload.patches[i].id);
    }
    return ids;
}

std::string candidate_key(const Workload& workload, const Candidate& candidate) {
    std::string key;
    for (const int k : workload.knobs_by_name) {
        const auto knob = static_cast<std::size_t>(k);
        if (candidate.values[knob] == workload.knobs[knob].reference) continue;
        if (!key.empty()) key += ',';
        key += chosen(workload, candidate, knob).text;
    }
    key += ';';
    bool is_first = true;
    for (const int i : workload.patches_by_id) {
        if (!candidate.has_patch(i)) continue;
        if (!is_first) key += ',';
        is_first = false;
        key += workload.patches[static_cast<std::size_t>(i)].id;
    }
    return key;
}

}  // namespace infrarsi::sim
