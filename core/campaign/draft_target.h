#pragma once
// From what a person points at to a launch line: part of init.

#include "core/campaign/init.h"
#include "core/repo/launch_script.h"

namespace infrarsi {

struct DraftTarget {
    std::filesystem::path root;
    std::string command;
    LaunchPlan plan;
    std::vector<std::string> notes;
};

[[nodiscard]] Expected<DraftTarget> find_target(const std::filesystem::path& target, const DraftOptions& options);

}  // namespace infrarsi
