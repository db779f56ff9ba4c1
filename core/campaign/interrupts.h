#pragma once
// What Ctrl-C does (home page, "Stop any time"): the first request stops the running trial and the search, and the best
// so far is re-verified; the second ends at once.

#include <atomic>
#include <stop_token>

namespace infrarsi {

// Thread-safe: `request` comes from the signal thread, the tokens are read by the runner.
class Interrupts {
public:
    enum class Policy { verify, stop };
    explicit Interrupts(Policy policy = Policy::verify) : policy_(policy) {}

    void request() {
        const int level = level_.fetch_add(1) + 1;
        soft_.request_stop();
        if (level >= 2 || policy_ == Policy::stop) hard_.request_stop();
    }
    [[nodiscard]] Policy policy() const { return policy_; }
    // Stops reference runs and the search.
    [[nodiscard]] std::stop_token search() const { return soft_.get_token(); }
    // Stops everything.
    [[nodiscard]] std::stop_token all() const { return hard_.get_token(); }

private:
    Policy policy_;
    std::atomic<int> level_{0};
    std::stop_source soft_, hard_;
};

}  // namespace infrarsi
