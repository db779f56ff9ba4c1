#pragma once
// Drafting a contract from a job as it is (DESIGN §6, init): what is launched, which knobs it has and what they are at,
// what may be edited and what must not, and why. Reads files only; runs and writes nothing. The text is made by
// core/contract/write_contract.h, the lock by core/contract/lock.h.

#include <filesystem>
#include <string>
#include <vector>

#include "core/contract/write_contract.h"
#include "core/mechanisms/mechanism.h"

namespace infrarsi {

struct HardwareProbe {
    int cores = 1;  // that the job may use
    int gpus = 0;
};

struct DraftOptions {
    std::string entry;    // a Python file or script, relative to the target folder (or absolute)
    std::string command;  // the whole launch line; wins over everything
    std::string config;   // a configuration file that the entry is to be started with
    std::string name;     // of the contract; empty: the folder's name
};

struct Draft {
    Contract contract;                  // root and file are set; file is <root>/infrarsi.yaml
    ContractComments comments;          // the reason for each knob and pattern
    std::vector<std::string> notes;     // what was found and decided, a sentence each
    std::vector<std::string> warnings;  // what the person should look at
};

// `target` (absolute) is a launch script, a Python entry, a folder, or an existing infrarsi.yaml, whose own words are
// kept and only completed. Errors say what to do: not_found (no such target, entry or script), invalid_input (no
// training command; several likely ones, which are listed with "--entry"), io. Bounded: < 2 s on 50,000 files.
[[nodiscard]] Expected<Draft> draft_contract(const std::filesystem::path& target, const DraftOptions& options,
                                             const HardwareProbe& hardware, const MechanismTable& mechanisms);

}  // namespace infrarsi
