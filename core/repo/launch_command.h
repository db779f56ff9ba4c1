#pragma once
// One command of a shell script, looked at as a possible training command: wrappers and launchers are peeled off until
// the Python entry stands bare. Part of launch_script.

#include <optional>
#include <string>
#include <vector>

#include "core/repo/launch_script.h"

namespace infrarsi {

struct PeeledCommand {
    enum class Kind { training, script, shell_text, other };
    Kind kind = Kind::other;
    Launcher launcher = Launcher::python;
    std::vector<std::string> wrappers;
    std::optional<int> processes_per_node, nodes;
    std::size_t entry = 0;  // index of the entry (or script, or `bash -c` text) in the words
    bool is_module = false;
    std::vector<std::pair<std::string, ShellWord>> env;  // of `env A=1 …`: name and the whole word
    int score = 0;                                       // how much it looks like training rather than preparation
};

[[nodiscard]] PeeledCommand peel_command(const std::vector<ShellWord>& words);

}  // namespace infrarsi
