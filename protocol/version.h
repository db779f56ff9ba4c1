#pragma once
// The version of the infrarsi/* extension of the Language Server Protocol; the wire itself comes with the language
// server.

#include <string_view>

namespace infrarsi::protocol {

[[nodiscard]] std::string_view extension_version();

}  // namespace infrarsi::protocol
