#pragma once
// Failure signatures in a job's output (DESIGN §7.3 no_errors; the facts are data/failures.yaml). A line is matched
// once; warnings that merely contain "error" or "nan" are not failures.

#include <optional>
#include <string_view>

#include "core/trial/receipt.h"

namespace infrarsi {

// The failure that a cleaned line states, or nothing. `stream` and `line` are filled by the caller.
[[nodiscard]] std::optional<FailureLine> scan_failure(std::string_view line);

// Bytes of a failed allocation named in the line, in GiB ("you tried to allocate 4294967296 bytes", "Tried to
// allocate 2.00 GiB").
[[nodiscard]] std::optional<double> tried_gib(std::string_view line);

}  // namespace infrarsi
