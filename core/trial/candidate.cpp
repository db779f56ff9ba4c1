#include "core/trial/candidate.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/json.h"
#include "core/text/diff.h"

namespace infrarsi {

namespace {

// One spelling for all values that a job cannot tell apart (same_effect): 4.0 and "4" are 4, "true" is true.
Value plain_value(const Value& value) {
    const Value read =
        std::holds_alternative<std::string>(value) ? value_from_text(std::get<std::string>(value)) : value;
    if (const auto* number = std::get_if<double>(&read)) {
        if (std::abs(*number) < 9e15 && *number == std::floor(*number)) return static_cast<std::int64_t>(*number);
    }
    // An empty text is a set, empty value; value_from_text would make it "not set".
    return is_null(read) ? value : read;
}

Expected<std::string> text_field(const nlohmann::json& json, const char* key) {
    const auto found = json.find(key);
    if (found == json.end()) return fail(ErrorKind::invalid_input, "a patch lacks the key '{}'", key);
    if (!found->is_string()) {
        return fail(ErrorKind::invalid_input, "'{}' of a patch must be text, not {}", key, found->type_name());
    }
    return found->get<std::string>();
}

}  // namespace

std::string Patch::digest() const {
    const auto normal = normalise_diff(diff);
    // A diff that does not parse fails when it is realised; until then its own bytes are its identity.
    return sha256_hex(normal ? "diff\n" + *normal : "unparsed\n" + diff);
}

std::string Candidate::signature() const {
    Settings plain;
    for (const auto& [name, value] : settings) plain[name] = plain_value(value);
    nlohmann::json digests = nlohmann::json::array();
    for (const Patch& patch : patches) digests.push_back(patch.digest());
    return sha256_hex(canonical_json({{"patches", std::move(digests)}, {"settings", to_json(plain)}}));
}

std::string Candidate::describe() const {
    constexpr std::size_t kNamed = 3;
    std::string text = infrarsi::describe(settings);
    for (std::size_t i = 0; i < patches.size() && i < kNamed; ++i) {
        text += fmt::format(" + {}", patches[i].title.empty() ? "a patch" : "patch " + patches[i].title);
    }
    if (patches.size() > kNamed) text += fmt::format(" + {} more", patches.size() - kNamed);
    return text;
}

nlohmann::json to_json(const Candidate& candidate) {
    nlohmann::json patches = nlohmann::json::array();
    for (const Patch& patch : candidate.patches) {
        patches.push_back({{"title", patch.title}, {"diff", patch.diff}, {"origin", patch.origin}});
    }
    return {{"settings", to_json(candidate.settings)}, {"patches", std::move(patches)}};
}

Expected<Candidate> candidate_from_json(const nlohmann::json& json) {
    if (!json.is_object()) {
        return fail(ErrorKind::invalid_input, "a candidate must be an object, not {}", json.type_name());
    }
    Candidate candidate;
    const auto settings = json.find("settings");
    if (settings == json.end()) return fail(ErrorKind::invalid_input, "a candidate lacks the key 'settings'");
    INFRARSI_ASSIGN(candidate.settings, settings_from_json(*settings));
    const auto patches = json.find("patches");
    if (patches == json.end()) return fail(ErrorKind::invalid_input, "a candidate lacks the key 'patches'");
    if (!patches->is_array()) {
        return fail(ErrorKind::invalid_input, "'patches' of a candidate must be a list, not {}", patches->type_name());
    }
    for (const auto& item : *patches) {
        if (!item.is_object()) {
            return fail(ErrorKind::invalid_input, "a patch must be an object, not {}", item.type_name());
        }
        Patch patch;
        INFRARSI_ASSIGN(patch.title, text_field(item, "title"));
        INFRARSI_ASSIGN(patch.diff, text_field(item, "diff"));
        INFRARSI_ASSIGN(patch.origin, text_field(item, "origin"));
        candidate.patches.push_back(std::move(patch));
    }
    return candidate;
}

}  // namespace infrarsi
