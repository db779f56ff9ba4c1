#include "core/contract/scope.h"

namespace infrarsi {

namespace {

Expected<std::vector<Glob>> parse_globs(const std::vector<std::string>& patterns) {
    std::vector<Glob> globs;
    for (const auto& pattern : patterns) {
        INFRARSI_ASSIGN(Glob glob, Glob::parse(pattern));
        globs.push_back(std::move(glob));
    }
    return globs;
}

bool any_matches(const std::vector<Glob>& globs, std::string_view path) {
    return std::any_of(globs.begin(), globs.end(), [&](const Glob& glob) { return glob.matches(path); });
}

}  // namespace

Expected<Scope> Scope::of(const Contract& contract) {
    Scope scope;
    INFRARSI_ASSIGN(scope.editable_, parse_globs(contract.editable));
    INFRARSI_ASSIGN(scope.frozen_, parse_globs(contract.frozen));
    scope.contract_file_ = contract.file.lexically_relative(contract.root).generic_string();
    return scope;
}

ScopeState Scope::state(std::string_view relative_path) const {
    const std::string path = std::filesystem::path(relative_path).lexically_normal().generic_string();
    if (path.empty() || path == "." || path.starts_with('/') || path == ".." || path.starts_with("../"))
        return ScopeState::outside;
    const bool ours = path == "infrarsi.yaml" || path == "infrarsi.lock" || path == contract_file_;
    const auto is_in = [&](std::string_view folder) {
        return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
    };
    if (ours || is_in(".infrarsi") || is_in(".git") || any_matches(frozen_, path)) return ScopeState::frozen;
    return any_matches(editable_, path) ? ScopeState::editable : ScopeState::outside;
}

std::string_view to_string(ScopeState state) {
    switch (state) {
        case ScopeState::editable: return "editable";
        case ScopeState::frozen: return "frozen";
        case ScopeState::outside: return "outside";
    }
    return "outside";
}

}  // namespace infrarsi
