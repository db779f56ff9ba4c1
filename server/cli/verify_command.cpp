// verify: judges stored evidence again, offline; and the verifier's own test matrix.

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/campaign/campaign.h"
#include "core/campaign/user_key.h"
#include "core/verify/matrix.h"
#include "server/cli/exit_codes.h"
#include "server/cli/output.h"
#include "server/cli/program.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

struct Subject {
    CampaignState state;
    Contract contract;
    ReferenceEvidence evidence;
};

Expected<Subject> load_subject(const fs::path& run_dir, const std::string& key) {
    Subject subject;
    INFRARSI_ASSIGN(subject.state, load_state(run_dir, key));
    INFRARSI_ASSIGN(subject.contract, campaign_contract(subject.state));
    INFRARSI_ASSIGN(subject.evidence, load_evidence(subject.state, key));
    return subject;
}

std::string verdict_text(const Verdict& verdict) {
    std::string text;
    for (const auto& result : verdict.results) {
        text +=
            fmt::format("  L{} {:<22} {:<9} {}{}\n", layer_of(result.id), to_string(result.id),
                        to_string(result.status), result.evidence, result.remedy.empty() ? "" : " → " + result.remedy);
    }
    return text + (verdict.valid ? "valid\n" : "rejected: " + verdict.reason + "\n");
}

Expected<int> verify_receipt(const Program&, const Options& options, const fs::path& path, const std::string& key) {
    INFRARSI_ASSIGN(const std::string text, read_file(path));
    INFRARSI_ASSIGN(const Receipt receipt, open_receipt(text, key, path.string()));
    const fs::path run_dir = fs::absolute(path).lexically_normal().parent_path().parent_path().parent_path();
    auto subject = load_subject(run_dir, key);
    if (!subject) {
        return Unexpected(std::move(subject).error().while_doing(
            fmt::format("looking for the reference of {} in its run, {}", path.string(), run_dir.string())));
    }
    const Verdict verdict = judge(receipt, subject->evidence, subject->contract.invariants);
    if (options.json) {
        print_out(pretty_json(to_json(verdict)));
    } else {
        print_out(fmt::format("{} ({})\n{}", receipt.trial, receipt.candidate.describe(), verdict_text(verdict)));
    }
    return verdict.valid ? kExitDone : kExitFoundWanting;
}

// A run is sound when every trial that its journal calls valid still is, and what it promoted was one of them.
Expected<int> verify_run(const Options& options, const fs::path& run_dir, const std::string& key) {
    INFRARSI_ASSIGN(const Subject subject, load_subject(run_dir, key));
    json rows = json::array();
    bool sound = true;
    std::string text;
    for (const auto& trial : subject.state.trials) {
        if (!trial.finished || trial.receipt_digest.empty()) continue;
        auto receipt = load_receipt(run_dir, trial, key);
        if (!receipt) {
            sound = false;
            rows.push_back({{"trial", trial.id}, {"valid", false}, {"why", receipt.error().describe()}});
            text += fmt::format("{:<22} does not verify: {}\n", trial.id, receipt.error().describe());
            continue;
        }
        const Verdict verdict = judge(*receipt, subject.evidence, subject.contract.invariants);
        const bool called_valid = trial.outcome == OutcomeKind::valid;
        if (called_valid && !verdict.valid) sound = false;
        rows.push_back({{"trial", trial.id},
                        {"role", trial.role},
                        {"candidate", trial.candidate.describe()},
                        {"valid", verdict.valid},
                        {"journal", to_string(trial.outcome)},
                        {"verdict", to_json(verdict)}});
        text += fmt::format("{:<22} {:<9} {}\n", trial.id, verdict.valid ? "valid" : "rejected",
                            verdict.valid ? trial.candidate.describe() : verdict.reason);
    }
    if (options.json) {
        print_out(pretty_json({{"run", run_dir.string()}, {"sound", sound}, {"trials", std::move(rows)}}));
    } else {
        print_out(text + (sound ? "The run's verdicts hold.\n" : "The run's verdicts do NOT hold.\n"));
    }
    return sound ? kExitDone : kExitFoundWanting;
}

struct MatrixInput {
    Receipt candidate;
    ReferenceEvidence evidence;
    InvariantRules rules;
};

// Real receipts of the newest run, or those recorded with the program where there is none.
Expected<MatrixInput> matrix_input(const Program& program, const Options& options, const std::string& key) {
    if (auto run_dir = find_run(program, options)) {
        INFRARSI_ASSIGN(Subject subject, load_subject(*run_dir, key));
        for (const auto& trial : subject.state.trials) {
            if (!trial.finished || trial.outcome != OutcomeKind::valid || trial.role == "reference") continue;
            INFRARSI_ASSIGN(Receipt receipt, load_receipt(*run_dir, trial, key));
            return MatrixInput{std::move(receipt), std::move(subject.evidence), subject.contract.invariants};
        }
        if (!subject.evidence.repeats.empty()) {
            Receipt repeat = subject.evidence.repeats.front();
            return MatrixInput{std::move(repeat), std::move(subject.evidence), subject.contract.invariants};
        }
    } else if (!options.target.empty()) {
        return Unexpected(std::move(run_dir).error());
    }
    const fs::path recorded = program.data_dir / "seeds" / "receipts";
    MatrixInput input;
    INFRARSI_ASSIGN(const std::string recorded_key, read_file(recorded / "key.txt"));
    const auto open = [&](const char* name) -> Expected<Receipt> {
        INFRARSI_ASSIGN(const std::string text, read_file(recorded / name));
        return open_receipt(text, std::string_view(recorded_key).substr(0, recorded_key.find('\n')), name);
    };
    INFRARSI_ASSIGN(input.evidence.reference, open("reference.json"));
    INFRARSI_ASSIGN(Receipt repeat, open("repeat.json"));
    INFRARSI_ASSIGN(input.candidate, open("candidate.json"));
    input.evidence.noise = estimate_noise({input.evidence.reference, repeat});
    input.evidence.repeats.push_back(std::move(repeat));
    return input;
}

Expected<int> verify_matrix(const Program& program, const Options& options, const std::string& key) {
    INFRARSI_ASSIGN(const MatrixInput input, matrix_input(program, options, key));
    INFRARSI_ASSIGN(const json matrix, run_matrix(input.candidate, input.evidence, input.rules));
    const bool all_right = matrix["perturbed"] == matrix["perturbed_rejected"] &&
                           matrix["benign"] == matrix["benign_accepted"] &&
                           std::all_of(matrix["rows"].begin(), matrix["rows"].end(),
                                       [](const json& row) { return row["ok"].is_null() || row["ok"] == true; });
    if (options.json) {
        print_out(pretty_json(matrix));
    } else {
        std::string text;
        for (const auto& row : matrix["rows"]) {
            const char* mark = row["ok"].is_null() ? "-" : row["ok"] == true ? "ok" : "BAD";
            text += fmt::format("{:<4} {:<44} expected {:<9} got {:<9} {}\n", mark, row.value("name", ""),
                                row.value("expected", ""), row.value("got", ""),
                                row.value("invariant", json()).is_string() ? row["invariant"].get<std::string>() : "");
        }
        text += fmt::format("{} of {} breaches rejected, {} of {} benign changes accepted\n",
                            matrix["perturbed_rejected"].get<int>(), matrix["perturbed"].get<int>(),
                            matrix["benign_accepted"].get<int>(), matrix["benign"].get<int>());
        print_out(text);
    }
    return all_right ? kExitDone : kExitFoundWanting;
}

}  // namespace

Expected<int> run_verify(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const std::string key, user_key(program.config_dir));
    if (options.matrix) return verify_matrix(program, options, key);
    if (!options.target.empty()) {
        const fs::path path = program.working_dir / options.target;
        std::error_code ignored;
        if (fs::is_regular_file(path, ignored)) return verify_receipt(program, options, path, key);
    }
    INFRARSI_ASSIGN(const fs::path run_dir, find_run(program, options));
    return verify_run(options, run_dir, key);
}

}  // namespace infrarsi
