#include "core/search/controller.h"

#include "core/search/operators.h"

namespace infrarsi {

namespace {

constexpr int kStarts = 3;
constexpr int kContrarianEvery = 4;   // trials
constexpr int kStalled = 3;           // trials without improvement, before a random configuration gets a slot
constexpr int kRandomEvery = 6;       // trials
constexpr double kLastChance = 0.25;  // of the gate

// Everything is derived from the problem and the history at each call; the object keeps nothing but the words of its
// last refusal.
class FirstController final : public Controller {
public:
    FirstController(const SearchProblem& problem, CandidateSource* source) : problem_(problem), source_(source) {}

    std::optional<Proposal> next(const std::vector<Outcome>& history) override {
        why_done_.clear();
        const std::vector<Patch> offered = source_ != nullptr ? source_->patches(history) : std::vector<Patch>{};
        if (offered.empty() && !has_choice()) {
            why_done_ =
                "there is nothing to search: no knob has a value other than the reference, and no patch was offered";
            return std::nullopt;
        }
        const Beliefs beliefs(problem_, history, offered);
        const Moves moves(beliefs);
        auto proposal = ask({beliefs, moves, offered});
        if (!proposal) why_done_ = why_nothing(beliefs, moves);
        return proposal;
    }

    [[nodiscard]] std::string why_done() const override { return why_done_; }

private:
    [[nodiscard]] bool has_choice() const {
        for (const Knob& knob : problem_.contract->knobs) {
            for (const Value& value : knob.values) {
                if (!same_effect(value, knob.reference)) return true;
            }
        }
        return false;
    }

    static std::optional<Proposal> ask(const Situation& situation) {
        if (auto proposal = user_patch(situation)) return proposal;
        const int done = situation.beliefs.setting_trials();
        if (done < kStarts) {
            if (auto proposal = start(situation, done)) return proposal;
        }
        if (auto proposal = complete_bundle(situation)) return proposal;
        const int trials = situation.beliefs.trials();
        const bool is_stalled = situation.beliefs.stalled() >= kStalled;
        if (is_stalled && trials % kRandomEvery == kRandomEvery - 1) {
            if (auto proposal = random_configuration(situation, "random")) return proposal;
        }
        const double gate = situation.beliefs.problem().gate;
        if (auto proposal = combine(situation, gate)) return proposal;
        if (trials % kContrarianEvery == kContrarianEvery - 1) {
            if (auto proposal = contrarian_probe(situation)) return proposal;
        }
        if (auto proposal = probe(situation)) return proposal;
        // What is left are combinations that hardly fit; they have their turn when nothing better is there.
        return combine(situation, kLastChance * gate);
    }

    // The start of this place, or a later one where it has nothing.
    static std::optional<Proposal> start(const Situation& situation, int place) {
        if (place == 0) {
            if (auto proposal = start_with_prior(situation)) return proposal;
        }
        if (place <= 1) {
            if (auto proposal = random_configuration(situation, "start:random")) return proposal;
        }
        return start_with_strongest(situation);
    }

    [[nodiscard]] std::string why_nothing(const Beliefs& beliefs, const Moves& moves) const {
        bool is_any_legal = false;
        for (const Move& move : moves.all()) {
            const auto candidate = moves.apply({}, move);
            if (candidate && !candidate->is_reference()) is_any_legal = true;
        }
        if (!is_any_legal && beliefs.trials() == 0) {
            return "no setting other than the reference is legal by itself: the constraints and the batch leave "
                   "nothing to try";
        }
        return fmt::format(
            "nothing left is worth a trial: no untried setting, patch or combination has a two-sigma upside over {} on "
            "the "
            "best so far ({:.2f}x)",
            percent(problem_.gate), std::exp(beliefs.incumbent_gain()));
    }

    const SearchProblem& problem_;
    CandidateSource* source_;
    std::string why_done_;
};

}  // namespace

std::unique_ptr<Controller> make_controller(const SearchProblem& problem, CandidateSource* patches) {
    INFRARSI_CHECK(problem.contract != nullptr, "a search has a contract");
    return std::make_unique<FirstController>(problem, patches);
}

}  // namespace infrarsi
