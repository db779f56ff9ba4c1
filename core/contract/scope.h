#pragma once
// Which files may be edited and which are frozen. Globs: `*` within a folder, `**` across folders, `?`, `[a-z]`,
// `{a,b}`; paths are relative to the project root with forward slashes. Frozen wins over editable.

#include <string>
#include <vector>

#include "core/contract/contract.h"

namespace infrarsi {

class Glob {
public:
    // invalid_input for an absolute pattern, one with `..`, or an unclosed class or brace.
    [[nodiscard]] static Expected<Glob> parse(std::string_view pattern);
    [[nodiscard]] bool matches(std::string_view path) const;
    [[nodiscard]] const std::string& pattern() const { return pattern_; }

private:
    std::string pattern_;
    std::vector<std::string> alternatives_;  // braces expanded
};

enum class ScopeState { editable, frozen, outside };

class Scope {
public:
    [[nodiscard]] static Expected<Scope> of(const Contract& contract);
    // infrarsi.yaml, infrarsi.lock and .infrarsi/ are always frozen to candidates.
    [[nodiscard]] ScopeState state(std::string_view relative_path) const;

private:
    std::vector<Glob> editable_, frozen_;
};

[[nodiscard]] std::string_view to_string(ScopeState state);

}  // namespace infrarsi
