#pragma once
// The search controller: history in, next candidate out, with its reason in words (paper §4, DESIGN §8). Deterministic:
// the same problem and history give the same proposal, so a campaign is replayed from its journal.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/search/history.h"

namespace infrarsi {

struct Proposal {
    Candidate candidate;
    std::string op;      // which operator proposed it: "start:random", "probe", "combine", …
    std::string reason;  // in words, for the journal, the report and the progress line
    double expected_log_gain = 0, sigma = 0;
    double p_fits = 1;
};

// Where patches come from. The search takes them through this interface; recipes and language models implement it.
class CandidateSource {
public:
    virtual ~CandidateSource() = default;
    // Patches that may be tried, in order of promise. Called before every proposal.
    [[nodiscard]] virtual std::vector<Patch> patches(const std::vector<Outcome>& history) = 0;
};

class Controller {
public:
    virtual ~Controller() = default;
    // Nothing: there is nothing left worth a trial; `why_done` says why.
    [[nodiscard]] virtual std::optional<Proposal> next(const std::vector<Outcome>& history) = 0;
    [[nodiscard]] virtual std::string why_done() const = 0;
};

// The first form: three starts, one-knob probes and greedy combination over the surrogate and the memory ledger. The
// full controller of paper §4 replaces this policy behind the same interface. `problem` and `patches` must outlive it.
[[nodiscard]] std::unique_ptr<Controller> make_controller(const SearchProblem& problem, CandidateSource* patches);

}  // namespace infrarsi
