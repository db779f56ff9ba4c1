#pragma once
// Candidates as rows of numbers, centred on the reference (the reference is the empty row). One feature for each (knob,
// value other than the reference), one for each patch, and one slope for each knob with an ordered scale, by which
// neighbouring values learn from one another.

#include <map>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/search/cholesky.h"
#include "core/trial/candidate.h"

namespace infrarsi {

enum class FeatureKind { setting, slope, patch };

struct Feature {
    FeatureKind kind = FeatureKind::setting;
    std::string knob;    // of settings and slopes
    Value value;         // of settings
    std::string digest;  // of patches
    Patch patch;
};

class FeatureSpace {
public:
    // Features of every value of every knob; `contract` must outlive the space.
    explicit FeatureSpace(const Contract& contract);

    // Adds features for what the contract does not list: patches, and settings of trials made under an older contract.
    void cover(const Candidate& candidate);

    [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
    [[nodiscard]] std::size_t size() const { return features_.size(); }

    // The rows of the two models; they differ in the scale of the slopes: time goes with doublings, log2(v/reference),
    // memory in proportion, v/reference − 1. The candidate must be canonical and covered.
    [[nodiscard]] SparseRow time_row(const Candidate& candidate) const;
    [[nodiscard]] SparseRow memory_row(const Candidate& candidate) const;

    // The same candidate in one spelling: values as the contract writes them, reference values left out. Candidates
    // with equal effect have equal canonical forms, hence equal signatures.
    [[nodiscard]] Candidate canonical(const Candidate& candidate) const;

    // A patch's digest, computed once per text.
    [[nodiscard]] std::string digest(const Patch& patch) const;

private:
    [[nodiscard]] SparseRow row(const Candidate& candidate, double (*scale)(double)) const;
    [[nodiscard]] std::optional<int> setting_index(const std::vector<int>& indices, const Value& value) const;
    int add_setting(const std::string& knob, const Value& value);

    const Contract& contract_;
    std::vector<Feature> features_;
    std::map<std::string, std::vector<int>> settings_;  // knob → its features
    struct Slope {
        const Knob* knob = nullptr;
        int feature = 0;
    };
    std::map<std::string, Slope> slopes_;
    std::map<std::string, int> patches_;  // digest → its feature
    mutable std::map<std::string, std::string> digests_;
};

// value/reference of a knob with an ordered positive scale, nothing of any other.
[[nodiscard]] std::optional<double> scale_ratio(const Knob& knob, const Value& value);

}  // namespace infrarsi
