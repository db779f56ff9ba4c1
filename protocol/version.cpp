#include "protocol/version.h"

namespace infrarsi::protocol {

std::string_view extension_version() {
    return "0.1";
}

}  // namespace infrarsi::protocol
