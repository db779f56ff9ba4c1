#include "server/cli/exit_codes.h"

namespace infrarsi {

int exit_code_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid_input: return 2;
        case ErrorKind::not_found: return 3;
        case ErrorKind::conflict: return 4;
        case ErrorKind::frozen: return 5;
        case ErrorKind::unsupported: return 6;
        case ErrorKind::timeout: return 7;
        case ErrorKind::resource: return 8;
        case ErrorKind::io: return 9;
        case ErrorKind::corrupt: return 10;
        case ErrorKind::internal: return 70;
        case ErrorKind::cancelled: return 130;
    }
    return 70;
}

}  // namespace infrarsi
