#include "core/simulate/evidence.h"

#include "core/base/digest.h"

namespace infrarsi::sim {

namespace {

template <class Numbers>
void multiply_from(Numbers& numbers, const EvidenceChange& change) {
    for (std::size_t i = static_cast<std::size_t>(change.from_update - 1); i < numbers.size(); ++i) {
        if constexpr (std::is_same_v<typename Numbers::value_type, double>) {
            numbers[i] *= change.multiply;
        } else {
            numbers[i] = static_cast<std::int64_t>(std::floor(static_cast<double>(numbers[i]) * change.multiply + 0.5));
        }
    }
}

// Salts pile up where several causes touch one digest.
struct Salts {
    std::vector<std::string> data;  // one an update
    std::string model;
    std::map<std::string, std::string> frozen;
};

void salt(const EvidenceChange& change, const std::string& cause, Salts& salts) {
    const std::string text = "|" + cause;
    if (change.field == EvidenceField::model_digest) salts.model += text;
    if (change.field == EvidenceField::frozen) salts.frozen[change.path] += text;
    if (change.field != EvidenceField::data_digest) return;
    for (std::size_t i = static_cast<std::size_t>(change.from_update - 1); i < salts.data.size(); ++i) {
        salts.data[i] += text;
    }
}

void apply_change(const EvidenceChange& change, const std::string& cause, Answer& answer, Salts& salts) {
    switch (change.field) {
        case EvidenceField::loss: multiply_from(answer.learning.loss, change); break;
        case EvidenceField::grad_norm: multiply_from(answer.learning.grad_norm, change); break;
        case EvidenceField::reported_step_times_s: multiply_from(answer.reported_step_times_s, change); break;
        case EvidenceField::tokens: multiply_from(answer.learning.tokens, change); break;
        case EvidenceField::sequence_length: multiply_from(answer.learning.sequence_length, change); break;
        case EvidenceField::optimizer_steps: {
            std::vector<std::int64_t>& steps = answer.learning.optimizer_steps;
            for (std::size_t i = static_cast<std::size_t>(change.from_update - 1); i < steps.size(); ++i) {
                steps[i] += change.add;
            }
            break;
        }
        case EvidenceField::parameters: {
            if (!answer.evidence) break;
            std::vector<std::int64_t> one = {answer.evidence->parameters};
            multiply_from(one, {.multiply = change.multiply});
            answer.evidence->parameters = one.front();
            break;
        }
        case EvidenceField::dtypes: {
            if (!answer.evidence) break;
            for (const auto& [dtype, share] : change.set) answer.evidence->dtypes[dtype] = share;
            break;
        }
        case EvidenceField::data_digest:
        case EvidenceField::model_digest:
        case EvidenceField::frozen: salt(change, cause, salts); break;
    }
}

}  // namespace

std::string evidence_digest(const Workload& workload, std::string_view what, std::string_view salt,
                            std::size_t digits) {
    return sha256_hex(fmt::format("infrarsi-sim-v1|{}|{}{}", workload.name, what, salt)).substr(0, digits);
}

void apply_breaches(const Workload& workload, const std::vector<BreachCause>& causes, Answer& answer) {
    Salts salts;
    salts.data.resize(answer.learning.data_digest.size());
    for (const BreachCause& cause : causes) {
        for (const EvidenceChange& change : cause.breach->changes) apply_change(change, cause.cause, answer, salts);
    }
    for (std::size_t i = 0; i < salts.data.size(); ++i) {
        if (salts.data[i].empty()) continue;
        answer.learning.data_digest[i] =
            evidence_digest(workload, fmt::format("data|{}", i + 1), salts.data[i], kDataDigits);
    }
    if (!answer.evidence) return;
    if (!salts.model.empty()) {
        answer.evidence->model_digest = evidence_digest(workload, "model", salts.model, kModelDigits);
    }
    for (const auto& [path, text] : salts.frozen) {
        answer.evidence->frozen[path] = evidence_digest(workload, "frozen|" + path, text, kFrozenDigits);
    }
}

}  // namespace infrarsi::sim
