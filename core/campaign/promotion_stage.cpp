// Promotion: the best candidates are re-run back to back with the unchanged job, and only that number is ever reported
// as the speed-up (DESIGN §7.2, paper §3.4).

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/campaign/impl.h"
#include "core/measure/window.h"

namespace infrarsi {

using nlohmann::json;

namespace {

constexpr int kMaxFinalists = 3;
constexpr int kMaxBlocks = 3;
constexpr int kLostBlocks = 2;  // blocks that may be given up because the unchanged job itself was disturbed

std::vector<TrialRecord> finalists(const CampaignState& state) {
    std::vector<TrialRecord> best;
    for (const auto& trial : state.trials) {
        if (trial.role != "candidate" || !trial.finished || trial.cancelled) continue;
        if (trial.outcome == OutcomeKind::valid && trial.log_speedup > state.doctor->gate) best.push_back(trial);
    }
    std::sort(best.begin(), best.end(), [](const TrialRecord& a, const TrialRecord& b) {
        return a.log_speedup != b.log_speedup ? a.log_speedup > b.log_speedup : a.number < b.number;
    });
    if (best.size() > kMaxFinalists) best.resize(kMaxFinalists);
    return best;
}

// The four runs of a block, in ABBA order.
struct Block {
    std::vector<TrialRecord> runs;
    bool complete = false;
    bool reference_broken = false;  // says nothing about the candidate
    std::string broken;             // why a run of it cannot be used
    std::vector<std::string> failed_invariants;
};

PairResult pair_of(const Block& block) {
    const auto& runs = block.runs;
    PairResult pair;
    pair.log_gain = 0.5 * (std::log(runs[0].mean_s) + std::log(runs[3].mean_s) - std::log(runs[1].mean_s) -
                           std::log(runs[2].mean_s));
    pair.log_gain_median = 0.5 * (std::log(runs[0].median_s) + std::log(runs[3].median_s) - std::log(runs[1].median_s) -
                                  std::log(runs[2].median_s));
    return pair;
}

Expected<void> write_result(const CampaignState& state) {
    json body = to_json(*state.result);
    body["run_id"] = state.run_id;
    body["contract_digest"] = state.contract_digest;
    body["tree_digest"] = state.tree_digest;
    return write_file(state.run_dir / "result.json", pretty_json(body));
}

// Runs the blocks of one finalist and decides.
class Retest {
public:
    Retest(Campaign::Impl& impl, PromotionRecord promotion) : impl_(impl), promotion_(std::move(promotion)) {}

    Expected<PromotionRecord> decide() {
        INFRARSI_TRY(impl_.record("promotion_started", {{"promotion", to_json(promotion_)}}));
        std::vector<PairResult> pairs;
        int lost = 0;
        for (int number = 1; !promotion_.decided; ++number) {
            INFRARSI_ASSIGN(const Block block, run_block(number));
            if (block.reference_broken && ++lost <= kLostBlocks) continue;
            if (!block.complete) {
                reject(block.broken);
                promotion_.failed_invariants = block.failed_invariants;
                break;
            }
            pairs.push_back(pair_of(block));
            promotion_.gain = judge_pairs(pairs, impl_.state.doctor->noise);
            promotion_.decision = promotion_.gain.decision;
            promotion_.reason = promotion_.gain.reason;
            promotion_.decided = promotion_.decision != Decision::undecided || pairs.size() == kMaxBlocks;
            last_candidate_ = block.runs[2].id;
        }
        if (promotion_.decision == Decision::promote) INFRARSI_TRY(check_gate());
        INFRARSI_TRY(impl_.record("promotion_decided", {{"promotion", to_json(promotion_)}}));
        return promotion_;
    }

private:
    void reject(std::string why) {
        promotion_.decided = true;
        promotion_.decision = Decision::reject;
        promotion_.reason = std::move(why);
    }

    Expected<void> check_gate() {
        INFRARSI_ASSIGN(const ReferenceEvidence evidence, load_evidence(impl_.state, impl_.services.key));
        INFRARSI_ASSIGN(const Receipt receipt,
                        load_receipt(impl_.state.run_dir, *impl_.state.trial(last_candidate_), impl_.services.key));
        const Verdict verdict = judge_promotion(receipt, evidence, impl_.contract.invariants, promotion_.gain);
        if (!verdict.valid) reject(verdict.reason);
        return {};
    }

    Expected<Block> run_block(int number) {
        Block block;
        constexpr std::string_view kOrder[] = {"ref-1", "cand-1", "cand-2", "ref-2"};
        for (const auto name : kOrder) {
            const bool is_reference = name.starts_with("ref");
            TrialRecord trial;
            trial.id = fmt::format("promo-{}-{}-{}", promotion_.index, number, name);
            trial.role = is_reference ? "promotion-reference" : "promotion-candidate";
            if (!is_reference) trial.candidate = promotion_.candidate;
            trial.op = "promotion";
            trial.reason = is_reference ? "the unchanged job, back to back" : "the finalist, back to back";
            INFRARSI_ASSIGN(trial, impl_.run_one(trial, impl_.services.interrupts->all()));
            if (trial.cancelled) {
                INFRARSI_TRY(impl_.record("interrupted", {{"stage", "promotion"}}));
                return fail(
                    ErrorKind::cancelled,
                    "stopped while the best candidate was being re-verified; `infrarsi finish {}` goes on from here",
                    impl_.state.run_dir.string());
            }
            block.runs.push_back(trial);
            if (trial.outcome != OutcomeKind::valid || trial.mean_s <= 0) {
                block.broken =
                    fmt::format("{} in the re-run: {}", is_reference ? "the unchanged job failed" : "it failed",
                                trial.verdict_reason);
                block.failed_invariants = trial.failed_invariants;
                block.reference_broken = is_reference;
                return block;
            }
        }
        block.complete = true;
        return block;
    }

    Campaign::Impl& impl_;
    PromotionRecord promotion_;
    std::string last_candidate_;  // trial id of the candidate's latest complete re-run
};

// The record of this finalist's re-test, begun or new.
PromotionRecord promotion_of(const CampaignState& state, const TrialRecord& finalist) {
    for (const auto& known : state.promotions) {
        if (known.trial == finalist.id) return known;
    }
    PromotionRecord promotion;
    promotion.index = static_cast<int>(state.promotions.size()) + 1;
    promotion.trial = finalist.id;
    promotion.candidate = finalist.candidate;
    return promotion;
}

}  // namespace

Expected<void> Campaign::promote() {
    Impl& impl = *impl_;
    if (impl.state.result) return write_result(impl.state);
    CampaignResult result;
    result.interrupted = impl.state.interrupted;
    const auto best = finalists(impl.state);
    result.reason = best.empty() ? "no candidate was faster than the noise of this job on this machine"
                                 : "no candidate kept its speed-up in the fresh re-run";
    if (!best.empty()) impl.services.observer->stage("promotion", "re-testing the best back to back", impl.state);
    for (const auto& finalist : best) {
        PromotionRecord promotion = promotion_of(impl.state, finalist);
        if (!promotion.decided) {
            INFRARSI_ASSIGN(promotion, Retest(impl, std::move(promotion)).decide());
        }
        if (promotion.decision == Decision::promote) {
            result.promoted = true;
            result.candidate = promotion.candidate;
            result.speedup = promotion.gain.speedup;
            result.low = std::exp(promotion.gain.low);
            result.high = std::exp(promotion.gain.high);
            result.reason = promotion.reason;
            break;
        }
        if (promotion.decision == Decision::undecided) {
            result.reason =
                "undecided: the best candidate's gain could not be told from the noise within the runs reserved for "
                "verification";
        }
    }
    INFRARSI_TRY(impl.record("campaign_finished", {{"result", to_json(result)}}));
    return write_result(impl.state);
}

}  // namespace infrarsi
