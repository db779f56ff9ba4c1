#pragma once
// Which files may be edited and which are frozen. Globs: `*` within a folder, `**` across folders (`**/` also none),
// `?`, `[a-z]`, `[!a-z]`, `{a,b}`, a backslash before a literal character; paths are relative to the project root with
// forward slashes, letters count as written, and dot files are files. Frozen wins over editable.

#include <string>
#include <vector>

#include "core/contract/contract.h"

namespace infrarsi {

class Glob {
public:
    // invalid_input for an absolute pattern, one with `..`, or an unclosed class or brace.
    [[nodiscard]] static Expected<Glob> parse(std::string_view pattern);
    // O(pattern · path) at worst; a path that differs in the literal beginning costs nothing.
    [[nodiscard]] bool matches(std::string_view path) const;
    // Whether a file below the folder could match; "" is the root. For walks that want to skip.
    [[nodiscard]] bool may_match_below(std::string_view folder) const;
    // Whether a folder is named literally in the pattern (`node_modules/x/**` names node_modules).
    [[nodiscard]] bool names_folder(std::string_view name) const;
    [[nodiscard]] const std::string& pattern() const { return pattern_; }

    struct Part {
        enum class Kind { literal, one, run, deep_run, folders, one_of };
        Kind kind = Kind::literal;
        std::string text;                                      // of a literal
        std::vector<std::pair<std::string, std::string>> set;  // ranges of one_of, as UTF-8 characters
        bool negated = false;
    };

private:
    std::string pattern_;
    std::vector<std::vector<Part>> alternatives_;  // braces expanded
};

enum class ScopeState { editable, frozen, outside };

class Scope {
public:
    [[nodiscard]] static Expected<Scope> of(const Contract& contract);
    // infrarsi.yaml (under whatever name), infrarsi.lock, .infrarsi/ and .git/ are always frozen to candidates. A path
    // that is absolute or climbs out is outside.
    [[nodiscard]] ScopeState state(std::string_view relative_path) const;

private:
    std::vector<Glob> editable_, frozen_;
    std::string contract_file_;  // relative to the root
};

[[nodiscard]] std::string_view to_string(ScopeState state);

}  // namespace infrarsi
