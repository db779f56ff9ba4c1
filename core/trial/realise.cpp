#include "core/contract/scope.h"
#include "core/repo/launch_edit.h"
#include "core/trial/materialise.h"
#include "core/trial/patching.h"

namespace infrarsi {

Expected<Realisation> realise(const Contract& contract, const std::filesystem::path& source_root,
                              const Candidate& candidate) {
    INFRARSI_ASSIGN(PatchedFiles patched, apply_patches(contract, source_root, candidate.patches));
    Realisation realisation;
    realisation.command = contract.launch.command;
    realisation.files = patched.files;
    realisation.removed.assign(patched.removed.begin(), patched.removed.end());
    realisation.notes = std::move(patched.notes);
    if (candidate.settings.empty()) return realisation;

    INFRARSI_ASSIGN(LaunchEdit edit, apply_settings(contract, source_root, candidate.settings, patched.files));
    INFRARSI_ASSIGN(const Scope scope, Scope::of(contract));
    for (auto& [path, text] : edit.files) {
        const auto before = patched.files.find(path);
        const bool was_only_patched = before != patched.files.end() && before->second == text;
        // A launch script is often outside the editable scope, which is about source patches; knobs may still turn
        // there.
        if (!was_only_patched && scope.state(path) == ScopeState::frozen) {
            return fail(
                ErrorKind::frozen,
                "the settings {} would change {}, which is frozen: take it out of scope.frozen, or the knob out "
                "of the contract",
                describe(candidate.settings), path);
        }
        realisation.files[path] = std::move(text);
    }
    realisation.command = std::move(edit.command);
    realisation.env = std::move(edit.env);
    realisation.notes.insert(realisation.notes.end(), edit.notes.begin(), edit.notes.end());
    return realisation;
}

}  // namespace infrarsi
