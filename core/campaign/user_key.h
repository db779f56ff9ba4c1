#pragma once
// The per-user signing key: outside every repository, mode 0600, made on first use, never visible to a trial (DESIGN
// §4).

#include <filesystem>
#include <string>

#include "core/base/expected.h"

namespace infrarsi {

// `config_dir` is ~/.config/infrarsi (or $XDG_CONFIG_HOME/infrarsi), decided by main. Reads or makes `config_dir/key`.
// io, corrupt (wrong length), and invalid_input when others can read it, with the chmod that mends it.
[[nodiscard]] Expected<std::string> user_key(const std::filesystem::path& config_dir);

}  // namespace infrarsi
