#include "core/search/features.h"

#include <algorithm>
#include <cmath>

namespace infrarsi {

std::optional<double> scale_ratio(const Knob& knob, const Value& value) {
    const auto positive = [](const Value& v) -> std::optional<double> {
        const Value read = std::holds_alternative<std::string>(v) ? value_from_text(std::get<std::string>(v)) : v;
        if (std::holds_alternative<bool>(read)) return std::nullopt;
        const auto number = to_number(read);
        return number && *number > 0 && std::isfinite(*number) ? number : std::nullopt;
    };
    const auto reference = positive(knob.reference);
    const auto number = positive(value);
    if (!reference || !number) return std::nullopt;
    return *number / *reference;
}

FeatureSpace::FeatureSpace(const Contract& contract) : contract_(contract) {
    for (const Knob& knob : contract.knobs) {
        int scaled = 0;
        for (const Value& value : knob.values) {
            if (same_effect(value, knob.reference)) continue;
            add_setting(knob.name, value);
            if (scale_ratio(knob, value)) ++scaled;
        }
        // A slope of one value alone would say what the value's own feature says.
        if (scaled < 2) continue;
        slopes_[knob.name] = {&knob, static_cast<int>(features_.size())};
        features_.push_back({.kind = FeatureKind::slope, .knob = knob.name});
    }
}

int FeatureSpace::add_setting(const std::string& knob, const Value& value) {
    for (const int index : settings_[knob]) {
        if (same_effect(features_[static_cast<std::size_t>(index)].value, value)) return index;
    }
    const int index = static_cast<int>(features_.size());
    settings_[knob].push_back(index);
    features_.push_back({.kind = FeatureKind::setting, .knob = knob, .value = value});
    return index;
}

void FeatureSpace::cover(const Candidate& candidate) {
    for (const auto& [name, value] : candidate.settings) {
        const Knob* knob = contract_.knob(name);
        if (knob == nullptr || !same_effect(value, knob->reference)) add_setting(name, value);
    }
    for (const Patch& patch : candidate.patches) {
        const std::string name = digest(patch);
        if (!patches_.try_emplace(name, static_cast<int>(features_.size())).second) continue;
        features_.push_back({.kind = FeatureKind::patch, .digest = name, .patch = patch});
    }
}

// Equal values first: comparing effects reads texts as numbers, and canonical candidates need that nowhere.
std::optional<int> FeatureSpace::setting_index(const std::vector<int>& indices, const Value& value) const {
    for (const int index : indices) {
        if (features_[static_cast<std::size_t>(index)].value == value) return index;
    }
    for (const int index : indices) {
        if (same_effect(features_[static_cast<std::size_t>(index)].value, value)) return index;
    }
    return std::nullopt;
}

SparseRow FeatureSpace::row(const Candidate& candidate, double (*scale)(double)) const {
    SparseRow result;
    for (const auto& [name, value] : candidate.settings) {
        const auto found = settings_.find(name);
        if (found == settings_.end()) continue;
        if (const auto index = setting_index(found->second, value)) result.push_back({*index, 1.0});
        const auto slope = slopes_.find(name);
        if (slope == slopes_.end()) continue;
        if (const auto ratio = scale_ratio(*slope->second.knob, value)) {
            result.push_back({slope->second.feature, scale(*ratio)});
        }
    }
    for (const Patch& patch : candidate.patches) {
        if (const auto found = patches_.find(digest(patch)); found != patches_.end()) {
            result.push_back({found->second, 1.0});
        }
    }
    std::sort(result.begin(), result.end(), [](const Term& a, const Term& b) { return a.feature < b.feature; });
    return result;
}

SparseRow FeatureSpace::time_row(const Candidate& candidate) const {
    return row(candidate, [](double ratio) { return std::log2(ratio); });
}

SparseRow FeatureSpace::memory_row(const Candidate& candidate) const {
    return row(candidate, [](double ratio) { return ratio - 1; });
}

namespace {

const Value& listed_spelling(const Knob& knob, const Value& value) {
    const auto same = std::find(knob.values.begin(), knob.values.end(), value);
    if (same != knob.values.end()) return *same;
    const auto alike = std::find_if(knob.values.begin(), knob.values.end(),
                                    [&](const Value& listed) { return same_effect(listed, value); });
    return alike != knob.values.end() ? *alike : value;
}

}  // namespace

Candidate FeatureSpace::canonical(const Candidate& candidate) const {
    Candidate result;
    for (const auto& [name, value] : candidate.settings) {
        const Knob* knob = contract_.knob(name);
        if (knob == nullptr) {
            result.settings[name] = value;
            continue;
        }
        const Value& spelling = listed_spelling(*knob, value);
        if (!same_effect(spelling, knob->reference)) result.settings[name] = spelling;
    }
    std::set<std::string> seen;
    for (const Patch& patch : candidate.patches) {
        if (seen.insert(digest(patch)).second) result.patches.push_back(patch);
    }
    return result;
}

std::string FeatureSpace::digest(const Patch& patch) const {
    const auto [entry, is_new] = digests_.try_emplace(patch.diff);
    if (is_new) entry->second = patch.digest();
    return entry->second;
}

}  // namespace infrarsi
