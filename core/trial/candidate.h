#pragma once
// A candidate: settings and a stack of patches (DESIGN §2). Types only; effects are in materialise.h.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"

namespace infrarsi {

struct Patch {
    std::string title;   // for people
    std::string diff;    // unified diff, paths relative to the project root, with a/ and b/
    std::string origin;  // "user", "recipe:sdpa", "llm:…"

    // SHA-256 of the normalised diff (no titles, no index lines, no trailing section text): equal patches are one
    // patch.
    [[nodiscard]] std::string digest() const;
};

struct Candidate {
    Settings settings;           // only what differs from the reference
    std::vector<Patch> patches;  // applied in order

    [[nodiscard]] bool is_reference() const { return settings.empty() && patches.empty(); }
    // SHA-256 over settings and patch digests: the identity for the visited set and the cache.
    [[nodiscard]] std::string signature() const;
    // `micro_batch=4 compile=true + patch sdpa`.
    [[nodiscard]] std::string describe() const;
};

[[nodiscard]] nlohmann::json to_json(const Candidate& candidate);
[[nodiscard]] Expected<Candidate> candidate_from_json(const nlohmann::json& json);

}  // namespace infrarsi
