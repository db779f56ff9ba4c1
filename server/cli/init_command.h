#pragma once
// Drafting infrarsi.yaml and infrarsi.lock, for init and optimize.

#include <nlohmann/json_fwd.hpp>

#include "server/cli/program.h"

namespace infrarsi {

struct Drafted {
    std::filesystem::path file;  // infrarsi.yaml
    bool written = false;        // false: one was there and is kept
    std::vector<std::string> notes, warnings;
    Contract contract;
    std::size_t frozen_files = 0;
};

enum class IfThere { refuse, keep };

// Drafts for options.target (default: the working folder) and writes both files. An infrarsi.yaml that is there is
// kept, or is a conflict, unless options.force; then it becomes infrarsi.yaml.bak.
[[nodiscard]] Expected<Drafted> draft_files(const Program& program, const Options& options, IfThere if_there);

[[nodiscard]] nlohmann::json to_json(const Drafted& drafted);
[[nodiscard]] std::string describe(const Drafted& drafted);

}  // namespace infrarsi
