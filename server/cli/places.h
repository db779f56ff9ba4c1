#pragma once
// Where the program finds its own things.

#include <filesystem>
#include <map>
#include <string>

namespace infrarsi {

// $XDG_CONFIG_HOME/infrarsi, else ~/.config/infrarsi.
[[nodiscard]] std::filesystem::path config_dir(const std::map<std::string, std::string>& env);

// Holds adapters/ and seeds/: ../share/infrarsi beside an installed program, else the source tree that it was built
// from.
[[nodiscard]] std::filesystem::path data_dir();

}  // namespace infrarsi
