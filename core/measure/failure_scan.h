#pragma once
// Failure signatures in a job's output (DESIGN §7.3 no_errors; the facts are data/failures.yaml, compiled in by
// scripts/make_failure_signatures.py). A line is matched once; warnings that merely contain "error" or "nan" are not
// failures. Cost: about a nanosecond a byte for a line that holds none of the texts that a signature starts from; the
// expressions (RE2) run on the other lines only.

#include <optional>
#include <string_view>

#include "core/trial/receipt.h"

namespace infrarsi {

// What a line says, beside its class.
struct FailureSignature {
    std::string_view id;             // "oom.cuda.new"
    std::string_view failure_class;  // "oom_device", "collective", …, "traceback"
    int rank = 0;                    // lower is closer to the root cause
    bool secondary = false;          // usually follows from another failure
    bool warning = false;            // tells of pressure, not of a failure (allocation retries, recompiles)
};

// The signature of lowest rank that the line holds, warnings included; nothing for an ordinary line. `line` is without
// its newline; prefixes of launchers do no harm. Thread-safe.
[[nodiscard]] std::optional<FailureSignature> match_failure(std::string_view line);

// The failure that a cleaned line states, or nothing. `stream` and `line` are filled by the caller.
[[nodiscard]] std::optional<FailureLine> scan_failure(std::string_view line);

// Picks the root cause of a run out of its failing lines: the lowest rank, the earliest among equals; lines that follow
// from other failures only when there is nothing else. Constant memory.
class PrimaryFailure {
public:
    void see(const FailureSignature& signature, FailureLine line);
    // Nothing when no failing line was seen.
    [[nodiscard]] const std::optional<FailureLine>& line() const { return line_; }

private:
    std::optional<FailureLine> line_;
    int order_ = 0;
};

// Bytes of a failed allocation named in the line, in GiB ("you tried to allocate 4294967296 bytes", "Tried to
// allocate 2.00 GiB").
[[nodiscard]] std::optional<double> tried_gib(std::string_view line);

// The numbers of an out-of-memory line; `in_use_gib` is 0 where the text does not say. Nothing when the line is not
// about a failed allocation with a size.
[[nodiscard]] std::optional<OutOfMemory> read_out_of_memory(std::string_view line);

}  // namespace infrarsi
