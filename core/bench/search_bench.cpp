#include "core/bench/search_bench.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "core/simulate/oracle.h"

namespace infrarsi::bench {

namespace {

Expected<void> check_workloads(const std::vector<sim::Workload>& workloads) {
    std::set<std::string> names;
    for (const sim::Workload& workload : workloads) {
        const sim::Kind kind = sim::truth(workload, sim::reference_candidate(workload)).kind;
        if (kind != sim::Kind::ok) {
            return fail(ErrorKind::invalid_input, "the reference of {} cannot be delivered ({}): no campaign can start",
                        workload.name, sim::to_string(kind));
        }
        // The first update has no time of its own: nobody saw it begin.
        if (workload.job.updates - std::max(workload.job.warmup, 1) < 2) {
            return fail(ErrorKind::invalid_input, "{} has {} updates with {} of warm-up: its window needs at least two",
                        workload.name, workload.job.updates, workload.job.warmup);
        }
        if (!names.insert(workload.name).second) {
            return fail(ErrorKind::invalid_input,
                        "two workloads are named {}, so that their scores cannot be told apart", workload.name);
        }
    }
    return {};
}

// Hands out campaigns and takes scores. The lock guards everything but the counter.
class Board {
public:
    Board(std::size_t count, const std::function<void(const CampaignScore&)>& on_score)
        : scores_(count), on_score_(on_score) {}

    [[nodiscard]] std::optional<std::size_t> take() {
        const std::size_t next = next_.fetch_add(1);
        return next < scores_.size() ? std::optional(next) : std::nullopt;
    }

    void put(std::size_t index, CampaignScore score) {
        const std::lock_guard lock(mutex_);
        scores_[index] = std::move(score);
        while (told_ < scores_.size() && scores_[told_]) {
            if (on_score_) on_score_(*scores_[told_]);
            ++told_;
        }
    }

    // A mistake of ours in one thread ends the others and is thrown in the caller's.
    void stop(std::exception_ptr why) {
        next_ = scores_.size();
        const std::lock_guard lock(mutex_);
        if (!why_) why_ = std::move(why);
    }

    [[nodiscard]] std::vector<CampaignScore> scores() const {
        if (why_) std::rethrow_exception(why_);
        std::vector<CampaignScore> all;
        for (const auto& score : scores_) all.push_back(*score);
        return all;
    }

private:
    std::atomic<std::size_t> next_ = 0;
    std::mutex mutex_;
    std::size_t told_ = 0;
    std::vector<std::optional<CampaignScore>> scores_;
    const std::function<void(const CampaignScore&)>& on_score_;
    std::exception_ptr why_;
};

}  // namespace

Expected<std::vector<CampaignScore>> run_search_bench(const SearchBench& bench, const Clock& clock,
                                                      const std::function<void(const CampaignScore&)>& on_score) {
    INFRARSI_TRY(check_workloads(bench.workloads));
    std::vector<double> oracles;
    for (const sim::Workload& workload : bench.workloads) {
        const auto optimum = sim::find_optimum(workload, sim::Levers::knobs_and_patches);
        INFRARSI_CHECK(optimum, "where the reference can be delivered there is an optimum");
        oracles.push_back(std::log(optimum->speedup));
    }
    const std::size_t strategies = bench.strategies.size();
    Board board(bench.workloads.size() * strategies * bench.seeds, on_score);
    const auto work = [&] {
        try {
            while (const auto index = board.take()) {
                const std::size_t cell = *index / bench.seeds, workload = cell / strategies;
                board.put(*index, score_campaign(bench.workloads[workload], oracles[workload],
                                                 bench.strategies[cell % strategies],
                                                 bench.first_seed + *index % bench.seeds, bench.budget_units, clock));
            }
        } catch (...) {
            board.stop(std::current_exception());
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int i = 1; i < bench.threads; ++i) threads.emplace_back(work);
        work();
    }
    return board.scores();
}

}  // namespace infrarsi::bench
