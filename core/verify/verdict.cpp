#include "core/verify/verdict.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/verify/invariants.h"

namespace infrarsi {
namespace {

struct Item {
    InvariantId id;
    std::string_view name;
    int layer;
    InvariantMode mode;
};

constexpr Item kItems[kInvariantCount] = {
    {InvariantId::completes, "completes", 1, InvariantMode::always},
    {InvariantId::no_errors, "no_errors", 1, InvariantMode::always},
    {InvariantId::memory_cap, "memory_cap", 1, InvariantMode::always},
    {InvariantId::same_workload, "same_workload", 2, InvariantMode::always},
    {InvariantId::same_data, "same_data", 2, InvariantMode::always},
    {InvariantId::same_model, "same_model", 2, InvariantMode::always},
    {InvariantId::frozen_files, "frozen_files", 2, InvariantMode::always},
    {InvariantId::optimizer_steps, "optimizer_steps", 3, InvariantMode::always},
    {InvariantId::loss_within_tolerance, "loss_within_tolerance", 4, InvariantMode::always},
    {InvariantId::grad_norm_within_tol, "grad_norm_within_tol", 4, InvariantMode::always},
    {InvariantId::eval_matches, "eval_matches", 4, InvariantMode::conditional},
    {InvariantId::precision, "precision", 4, InvariantMode::informational},
    {InvariantId::timing_consistent, "timing_consistent", 5, InvariantMode::always},
    {InvariantId::speed_reproduces, "speed_reproduces", 5, InvariantMode::promotion},
    {InvariantId::resume_continues, "resume_continues", 5, InvariantMode::conditional},
    {InvariantId::user_tests, "user_tests", 5, InvariantMode::conditional},
};

const Item& item_of(InvariantId id) {
    return kItems[static_cast<std::size_t>(id)];
}

bool is_configured(InvariantId id, const InvariantRules& rules) {
    switch (id) {
        case InvariantId::eval_matches: return rules.eval.has_value();
        case InvariantId::resume_continues: return rules.resume.has_value();
        case InvariantId::user_tests: return !rules.tests.empty();
        default: return true;
    }
}

// Whether an unchecked item rejects.
bool is_required(InvariantId id, const Verdict& verdict, const InvariantRules& rules) {
    const bool named = std::find(rules.required.begin(), rules.required.end(), to_string(id)) != rules.required.end();
    switch (mode_of(id)) {
        case InvariantMode::always: return rules.strict || named;
        case InvariantMode::conditional: return is_configured(id, rules);
        case InvariantMode::informational: return named;
        case InvariantMode::promotion: return verdict.for_promotion;
    }
    return true;
}

void decide(Verdict& verdict, const InvariantRules& rules) {
    const auto rejecting = verdict.rejecting(rules);
    verdict.valid = rejecting.empty();
    verdict.reason.clear();
    if (!rejecting.empty()) {
        const auto& first = verdict[rejecting.front()];
        verdict.reason = fmt::format("{}{}: {}", to_string(first.id),
                                     first.status == Status::unchecked ? " (unchecked)" : "", first.evidence);
    }
}

}  // namespace

std::vector<InvariantId> Verdict::rejecting(const InvariantRules& rules) const {
    std::vector<InvariantId> ids;
    for (const auto& result : results) {
        const bool rejects = result.status == Status::fail ||
                             (result.status == Status::unchecked && is_required(result.id, *this, rules));
        if (rejects) {
            ids.push_back(result.id);
        }
    }
    return ids;
}

Verdict judge(const Receipt& candidate, const ReferenceEvidence& reference, const InvariantRules& rules) {
    Comparison c{candidate, reference, rules, false};
    const auto data = same_data(c);
    c.same_data_proven = data.status == Status::pass;
    Verdict verdict;
    verdict.results = {completes(c),
                       no_errors(c),
                       memory_cap(c),
                       same_workload(c),
                       data,
                       same_model(c),
                       frozen_files(c),
                       optimizer_steps(c),
                       loss_within_tolerance(c),
                       grad_norm_within_tol(c),
                       eval_matches(c),
                       precision(c),
                       timing_consistent(c),
                       result_of(InvariantId::speed_reproduces, Status::unchecked,
                                 "not re-run against a fresh reference yet", "promote the candidate"),
                       resume_continues(c),
                       user_tests(c)};
    decide(verdict, rules);
    return verdict;
}

Verdict judge_promotion(const Receipt& candidate, const ReferenceEvidence& reference, const InvariantRules& rules,
                        const GainEstimate& gain) {
    auto verdict = judge(candidate, reference, rules);
    verdict.for_promotion = true;
    auto& speed = verdict.results[static_cast<std::size_t>(InvariantId::speed_reproduces)];
    speed.evidence = gain.reason;
    speed.remedy.clear();
    switch (gain.decision) {
        case Decision::promote: speed.status = Status::pass; break;
        case Decision::reject: speed.status = Status::fail; break;
        case Decision::undecided:
            speed.status = Status::unchecked;
            speed.evidence = "undecided: " + gain.reason;
            speed.remedy = "run more pairs of reference and candidate, or use a quieter machine";
            break;
    }
    decide(verdict, rules);
    return verdict;
}

std::string_view to_string(InvariantId id) {
    return item_of(id).name;
}

std::string_view to_string(Status status) {
    switch (status) {
        case Status::pass: return "pass";
        case Status::fail: return "fail";
        case Status::unchecked: return "unchecked";
        case Status::reported: return "reported";
    }
    return "unchecked";
}

int layer_of(InvariantId id) {
    return item_of(id).layer;
}

InvariantMode mode_of(InvariantId id) {
    return item_of(id).mode;
}

std::optional<InvariantId> invariant_from_string(std::string_view name) {
    for (const auto& item : kItems) {
        if (item.name == name) {
            return item.id;
        }
    }
    return std::nullopt;
}

nlohmann::json to_json(const Verdict& verdict) {
    auto results = nlohmann::json::array();
    for (const auto& result : verdict.results) {
        nlohmann::json row = {{"id", to_string(result.id)},
                              {"layer", layer_of(result.id)},
                              {"status", to_string(result.status)},
                              {"evidence", result.evidence}};
        if (!result.remedy.empty()) {
            row["remedy"] = result.remedy;
        }
        results.push_back(std::move(row));
    }
    return {{"verifier", verdict.verifier},
            {"valid", verdict.valid},
            {"reason", verdict.reason},
            {"promotion", verdict.for_promotion},
            {"results", std::move(results)}};
}

namespace {

Expected<Status> status_from_string(const std::string& text) {
    for (const auto status : {Status::pass, Status::fail, Status::unchecked, Status::reported}) {
        if (to_string(status) == text) {
            return status;
        }
    }
    return fail(ErrorKind::invalid_input, "a verdict has no status named {}", text);
}

}  // namespace

Expected<Verdict> verdict_from_json(const nlohmann::json& json) {
    try {
        Verdict verdict;
        verdict.verifier = json.at("verifier").get<std::string>();
        verdict.valid = json.at("valid").get<bool>();
        verdict.reason = json.at("reason").get<std::string>();
        verdict.for_promotion = json.value("promotion", false);
        for (const auto& row : json.at("results")) {
            const auto name = row.at("id").get<std::string>();
            const auto id = invariant_from_string(name);
            if (!id || static_cast<std::size_t>(*id) != verdict.results.size()) {
                return fail(ErrorKind::invalid_input,
                            "a verdict's results must be the {} invariants in order; found {}", kInvariantCount, name);
            }
            INFRARSI_ASSIGN(const auto status, status_from_string(row.at("status").get<std::string>()));
            verdict.results.push_back({*id, status, row.at("evidence").get<std::string>(), row.value("remedy", "")});
        }
        if (verdict.results.size() != kInvariantCount) {
            return fail(ErrorKind::invalid_input, "a verdict has {} results, found {}", kInvariantCount,
                        verdict.results.size());
        }
        return verdict;
    } catch (const nlohmann::json::exception& error) {
        return fail(ErrorKind::invalid_input, "this is not a verdict: {}", error.what());
    }
}

}  // namespace infrarsi
