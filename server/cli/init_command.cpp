#include "server/cli/init_command.h"

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/campaign/init.h"
#include "core/contract/lock.h"
#include "core/contract/write_contract.h"
#include "server/cli/exit_codes.h"
#include "server/cli/output.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

int number_of(const std::map<std::string, std::string>& fingerprint, const char* name, int otherwise) {
    const auto it = fingerprint.find(name);
    if (it == fingerprint.end()) return otherwise;
    return static_cast<int>(to_number(value_from_text(it->second)).value_or(otherwise));
}

}  // namespace

Expected<Drafted> draft_files(const Program& program, const Options& options, IfThere if_there) {
    const fs::path target = (program.working_dir / (options.target.empty() ? "." : options.target)).lexically_normal();
    std::error_code ignored;
    if (!fs::exists(target, ignored)) {
        return fail(ErrorKind::not_found, "there is no {}: give a launch script, a Python entry or a repository",
                    target.string());
    }
    const auto fingerprint = program.target->fingerprint();
    const HardwareProbe hardware{number_of(fingerprint, "cores", 1), number_of(fingerprint, "gpus", 0)};
    DraftOptions draft_options;
    draft_options.entry = options.entry;
    draft_options.command = options.job_command;
    draft_options.config = options.config;
    const MechanismTable mechanisms = shipped_mechanisms();
    // A contract that is there speaks for itself: it is read, not drafted.
    Drafted drafted;
    if (!options.force) {
        const fs::path folder = fs::is_directory(target, ignored) ? target : target.parent_path();
        const fs::path there = target.extension() == ".yaml" ? target : folder / "infrarsi.yaml";
        if (fs::exists(there, ignored)) {
            if (if_there == IfThere::refuse) {
                return fail(ErrorKind::conflict,
                            "{} is there already: `infrarsi init --force` drafts it again and keeps the old one as "
                            "infrarsi.yaml.bak",
                            there.string());
            }
            drafted.file = there;
            INFRARSI_ASSIGN(drafted.contract, read_contract(there));
            return drafted;
        }
    }
    INFRARSI_ASSIGN(Draft draft, draft_contract(target, draft_options, hardware, mechanisms));
    draft.contract.requirements = options.requirements;
    if (!options.requirements.empty()) {
        draft.warnings.push_back(
            "requirements are kept in infrarsi.yaml, but this version does not compile them: nothing checks them yet");
    }
    drafted.file = draft.contract.file;
    const std::string text = write_contract_yaml(draft.contract, draft.comments);
    // What was drafted must be what a reader gets; a mistake of ours must not become the user's error later.
    INFRARSI_ASSIGN(drafted.contract, parse_contract(text, drafted.file));
    INFRARSI_ASSIGN(const Lock lock, make_lock(drafted.contract));
    drafted.frozen_files = lock.frozen.size();
    drafted.notes = draft.notes;
    drafted.warnings = draft.warnings;
    if (options.dry_run) return drafted;
    if (fs::exists(drafted.file, ignored)) {
        INFRARSI_ASSIGN(const std::string old_text, read_file(drafted.file));
        INFRARSI_TRY(write_file(drafted.file.string() + ".bak", old_text));
        drafted.notes.push_back("the old infrarsi.yaml is kept as infrarsi.yaml.bak");
    }
    INFRARSI_TRY(write_file(drafted.file, text));
    INFRARSI_TRY(write_lock(lock, drafted.file.parent_path() / "infrarsi.lock"));
    drafted.written = true;
    return drafted;
}

json to_json(const Drafted& drafted) {
    return {{"file", drafted.file.string()},
            {"written", drafted.written},
            {"notes", drafted.notes},
            {"warnings", drafted.warnings},
            {"knobs", drafted.contract.knobs.size()},
            {"frozen_files", drafted.frozen_files}};
}

std::string describe(const Drafted& drafted) {
    if (!drafted.written && drafted.notes.empty())
        return fmt::format("init: using {} ({} knobs)\n", drafted.file.string(), drafted.contract.knobs.size());
    std::string text = fmt::format("init: drafted {} ({} knobs, {} frozen files locked)\n", drafted.file.string(),
                                   drafted.contract.knobs.size(), drafted.frozen_files);
    for (const auto& note : drafted.notes) text += "  " + note + "\n";
    for (const auto& warning : drafted.warnings) text += "  look at: " + warning + "\n";
    return text;
}

Expected<int> run_init(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const Drafted drafted, draft_files(program, options, IfThere::refuse));
    print_out(options.json ? pretty_json(to_json(drafted))
                           : describe(drafted) +
                                 "Read infrarsi.yaml and commit it with infrarsi.lock; `infrarsi doctor` is next.\n");
    return kExitDone;
}

}  // namespace infrarsi
