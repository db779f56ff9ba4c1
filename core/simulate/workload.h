#pragma once
// A simulated training job as its file describes it: where the time of an update goes, what each setting and each patch
// does to it, what does not work together, and how noisy it all is. Plain values; core/simulate/truth.h computes with
// them. Settings are named by index (knob, value) so that a search can ask for hundreds of thousands of candidates.
// Source: SIMULATOR.md §2. Times in seconds, memory in GiB per device, factors relative to the reference value.

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/value.h"

namespace infrarsi::sim {

enum class Phase { matmul, attention, elementwise, recompute, communication, optimizer, host, data };
inline constexpr std::size_t kPhaseCount = 8;
inline constexpr std::array<std::string_view, kPhaseCount> kPhaseNames = {
    "matmul", "attention", "elementwise", "recompute", "communication", "optimizer", "host", "data"};
using PerPhase = std::array<double, kPhaseCount>;
inline constexpr PerPhase kNoEffect = {1, 1, 1, 1, 1, 1, 1, 1};

struct Setting {
    int knob = 0, value = 0;  // indices

    bool operator==(const Setting&) const = default;
};
using Condition = std::vector<Setting>;  // all of them hold; an empty one always does

// What a breach changes in the evidence of a run.
enum class EvidenceField {
    loss,
    grad_norm,
    reported_step_times_s,
    tokens,
    sequence_length,
    optimizer_steps,
    data_digest,
    model_digest,
    frozen,
    parameters,
    dtypes
};

struct EvidenceChange {
    EvidenceField field = EvidenceField::loss;
    int from_update = 1;                // of series
    double multiply = 1;                // of numbers
    std::int64_t add = 0;               // of optimizer_steps
    std::map<std::string, double> set;  // of dtypes
    std::string path;                   // of frozen
};

struct Breach {
    std::string invariant;  // the one that must catch it
    std::vector<EvidenceChange> changes;
};

struct KnobValue {
    Value value;
    std::string text;  // `name=value`, the value as compact JSON
    PerPhase phases = kNoEffect;
    double memory_gib = 0;
    double activation_factor = 1;
    double first_update_s = 0;
    bool is_legal = true;          // inside the contract's precision menu
    std::optional<Breach> breach;  // of a value that is not legal
};

struct Knob {
    std::string name;
    std::optional<std::string> mechanism;
    bool is_ordered = false;
    int reference = 0;
    std::vector<KnobValue> values;
};

struct Attenuation {
    Condition when;
    double exponent = 1;
};

struct Patch {
    std::string id, title;
    std::optional<std::string> mechanism;
    PerPhase phases = kNoEffect;
    double memory_gib = 0;
    double first_update_s = 0;
    double success = 1;      // chance that a first plain attempt works
    Condition requirements;  // without them it does nothing to time
    std::vector<Attenuation> attenuations;
    bool is_hack = false;
    std::optional<Breach> breach;  // of a hack
};

struct Interaction {
    Condition when;
    PerPhase phases = kNoEffect;
    double memory_gib = 0;
};

struct Conflict {
    enum class Kind { crash, hang, numeric, contract };

    Condition when;
    Kind kind = Kind::crash;
    std::string text;              // on standard error
    std::optional<Breach> breach;  // of `contract`
};

struct Device {
    std::string model;
    int count = 1, nodes = 1;
    double capacity_gib = 0;
    double context_gib = 0;  // outside PyTorch's allocator
};

struct LearningSeries {
    double initial = 0, floor = 0;
    double data_noise = 0, rounding = 0;  // relative
};

struct Job {
    double step_time_s = 0;
    int updates = 1;
    int warmup = 0;  // < updates
    std::int64_t sequence_length = 0, tokens_per_update = 0, parameters = 0;
    std::optional<double> model_flops_per_update, peak_flops_per_device;
    std::vector<std::string> precision_menu;
    std::map<std::string, double> dtypes;  // share of calls
    double learning_rate = 0;
    LearningSeries loss, grad_norm;
    double half_life = 1;  // of both, in updates
    std::vector<std::string> frozen;
};

struct Memory {
    double base_gib = 0, activation_gib = 0;
    double thrash_from = 1;      // share of the capacity
    double thrash_slowdown = 0;  // at the capacity
    double reading_noise = 0;
    double oom_request_low = 0, oom_request_high = 0;  // shares of the capacity
};

struct Noise {
    double sigma_pair = 0;  // sd of ln of the ratio of two window means
    double within_run = 0;  // share of it that averages out within a run
    double drift_coefficient = 0, drift_innovation = 0;
    double stall_probability = 0, stall_scale = 0, stall_index = 1;
};

struct Timing {
    double startup_s = 0;
    double warmup_excess = 0, warmup_half_life = 1;
    double hang_timeout = 1;  // in reference runs
};

// In cost units: one is a reference run.
struct Costs {
    double startup_share = 0;
    double oom = 0, crash = 0, hang = 0, patch_failed = 0, reviewed = 0;
};

// What the simulated proposer believes before any trial.
struct PriorRules {
    struct Override {
        Setting setting;
        double log_gain = 0;
    };

    double spearman_low = 0, spearman_high = 0;
    double mean = 0, sd = 0;  // log gain
    std::vector<Override> overrides;
    double familiarity = 1;
    int max_attempts = 1;
    bool is_flat = false;
};

struct ExpectedFact {
    std::vector<Setting> settings;
    std::vector<int> patches;
    std::string kind = "ok";
    std::optional<double> speedup, short_gib;
    double tolerance = 0;
};

// For the tests of a file; never shown to a strategy.
struct ExpectedFacts {
    std::optional<double> reference_peak_gib, ceiling, knob_ceiling;
    std::vector<ExpectedFact> facts;
};

inline constexpr std::size_t kMostPatches = 64;  // a candidate holds them as bits

struct Workload {
    std::string name, title;  // `name` keys every random stream
    Device device;
    Job job;
    PerPhase shares{};  // of the reference's update; sum 1
    Memory memory;
    Noise noise;
    Timing timing;
    Costs costs;
    std::vector<Knob> knobs;
    std::vector<Interaction> interactions;
    std::vector<Conflict> conflicts;
    std::vector<Patch> patches;
    PriorRules prior;
    ExpectedFacts expected;

    // Knob indices in the order of their names' bytes, patches likewise: the order of a candidate's key.
    std::vector<int> knobs_by_name, patches_by_id;

    [[nodiscard]] std::optional<int> find_knob(std::string_view name) const;
    [[nodiscard]] std::optional<int> find_patch(std::string_view id) const;
};

// The value's index, type included (2 is not "2" and not 2.0).
[[nodiscard]] std::optional<int> find_value(const Knob& knob, const Value& value);

// Reads `infrarsi-workload-v1`. `path` is for places. `overrides` are `PATH=VALUE` (`noise.sigma_pair=0.06`), applied
// before anything is checked: PATH are keys joined by dots, in lists an index or the `name` or `id` of an item, VALUE
// is YAML. invalid_input with the first thing that is wrong and its place: syntax, a key that is unknown or missing, a
// value out of range, shares that do not sum to 1, a reference that is no value, a condition on a value that is not
// there, a hack without a breach, an override that names nothing.
[[nodiscard]] Expected<Workload> read_workload(std::string_view text, const std::string& path,
                                               const std::vector<std::string>& overrides = {});

// Of a file; its errors too.
[[nodiscard]] Expected<Workload> load_workload(const std::filesystem::path& path,
                                               const std::vector<std::string>& overrides = {});

}  // namespace infrarsi::sim
