#pragma once
// The simulated job of one campaign: (workload, seed, candidate, repeat) → what a trial would have given. The index of
// a trial matters only through the machine's slow drift; the order in which candidates are asked changes nothing once
// index and repeat are given, and all strategies meet the same luck for the same seed. Source: SIMULATOR.md §4–§6.

#include <unordered_map>

#include "core/simulate/answer.h"

namespace infrarsi::sim {

class Simulator {
public:
    // `workload` must outlive the simulator.
    Simulator(const Workload& workload, std::uint64_t seed);
    Simulator(Workload&&, std::uint64_t) = delete;

    // Not thread-safe: it counts trials for the defaults of index and repeat. One of its own for each thread answers
    // the same. Cost, optimised: about 20 µs, 8 with Detail::times. `request` is as request_from_json would give it.
    [[nodiscard]] Answer answer(const Request& request);

    [[nodiscard]] const Workload& workload() const { return workload_; }
    [[nodiscard]] std::uint64_t seed() const { return seed_; }

    // d(index), of ln step time.
    [[nodiscard]] double drift(std::int64_t index);

private:
    // The same for all candidates of the campaign.
    struct Common {
        std::vector<double> loss_noise, grad_noise, decay;  // a_u, b_u, h_u
        std::vector<std::string> data_digest;
        Evidence evidence;
    };
    struct Run;  // one answer in the making

    [[nodiscard]] RandomStream stream(const Run& run, std::string_view purpose) const;
    [[nodiscard]] const Common& common();

    void add_outcome(Run& run) const;
    void add_step_times(Run& run);
    void add_learning(Run& run);
    void add_divergence(const Run& run, LearningRecord& learning) const;
    void add_memory(Run& run) const;
    void add_profile(Run& run) const;
    void add_costs(Run& run) const;
    void add_text(Run& run) const;

    const Workload& workload_;
    std::uint64_t seed_ = 0;
    std::string seed_text_;
    std::vector<double> warmup_;  // g_u
    std::vector<double> drift_;
    std::optional<Common> common_;
    std::int64_t last_index_ = -1;
    std::unordered_map<std::string, std::int64_t> answered_;  // by candidate key
};

}  // namespace infrarsi::sim
