#pragma once
// What is asked of the simulated job and what it answers, as values and as lines of JSON. An answer holds what a real
// trial's files would: nothing of the truth but through them. Source: SIMULATOR.md §4.

#include <nlohmann/json_fwd.hpp>

#include "core/simulate/proposer.h"

namespace infrarsi::sim {

inline constexpr std::string_view kAnswerSchema = "infrarsi-sim-answer-v1";
// Drift is a walk from trial 0, so that an index has a cost; far above any campaign.
inline constexpr std::int64_t kLastIndex = 1'000'000;

// A patch of the candidate that is being written, not one that already works.
struct PatchAttempt {
    int patch = 0;
    int attempt = 1;  // from 1
    Support support = Support::plain;
};

enum class Detail {
    full,
    times  // neither the learning series nor the evidence: less than half of the cost, all other values the same
};

struct Request {
    Candidate candidate;
    std::vector<PatchAttempt> attempts;         // of patches that the candidate has
    std::optional<std::int64_t> index, repeat;  // from 0; default: the next trial, and how often it was answered
    std::optional<int> updates;                 // 1 to the job's; default: all
    bool profile = false;
    Detail detail = Detail::full;
};

// invalid_input in one sentence: an unknown key, knob, value, patch or kind of support, a number out of range.
[[nodiscard]] Expected<Request> request_from_json(const Workload& workload, const nlohmann::json& json);

// One entry an update. Floating-point numbers have nine significant digits; a loss that is no number is NaN.
struct LearningRecord {
    std::vector<double> loss, grad_norm, learning_rate;
    std::vector<std::int64_t> optimizer_steps, tokens, sequence_length;
    std::vector<std::string> data_digest;
};

struct Evidence {
    std::string model_digest;
    std::int64_t parameters = 0;
    std::map<std::string, double> dtypes;       // share of calls
    std::map<std::string, std::string> frozen;  // path → digest
};

struct MemoryReading {
    double peak_gib = 0;       // at most the capacity
    double reserved_gib = 0;   // by PyTorch's allocator
    double allocated_gib = 0;  // of it, in use
    std::int64_t alloc_retries = 0;
};

struct Profile {
    PerPhase operator_s{};  // seconds of an update
    double forward_s = 0, backward_s = 0, collectives_s = 0, optimizer_s = 0, data_s = 0;
};

struct Answer {
    std::string workload;
    std::uint64_t seed = 0;
    std::int64_t index = 0, repeat = 0;
    std::string candidate;  // its key
    Outcome status = Outcome::completed;
    std::optional<int> failed_patch;  // the attempt that did not work, if one is why it crashed
    int exit_code = 0;
    bool timed_out = false;
    int updates_requested = 0, updates_done = 0;
    Detail detail = Detail::full;

    // Empty for crash, hang and out of memory, as is all that follows but the text and the costs.
    std::vector<double> step_times_s;           // the harness's clock
    std::vector<double> reported_step_times_s;  // the job's own
    LearningRecord learning;                    // with Detail::full
    std::optional<Evidence> evidence;           // with Detail::full
    std::optional<MemoryReading> memory;
    std::optional<Profile> profile;  // where asked for

    std::string stderr_text;
    double wall_s = 0, gpu_hours = 0;
    double cost_units = 0;  // one is a reference run
};

// One object; with Detail::times the fields that were not asked for are left out.
[[nodiscard]] nlohmann::json to_json(const Answer& answer);
[[nodiscard]] nlohmann::json invalid_answer(std::string_view message);
// `truth` of an answer, for scoring only.
[[nodiscard]] nlohmann::json truth_json(const Workload& workload, const Candidate& candidate, const Answer& answer);

// Nine significant digits, as `%.9g` and back: hides the last bits in which mathematical libraries differ.
[[nodiscard]] double round_to_nine_digits(double number);

}  // namespace infrarsi::sim
