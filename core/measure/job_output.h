#pragma once
// The job's own output as the agent spooled it: readings of its log lines, and lines that mean failure. Streams; the
// output may be larger than memory.

#include <filesystem>
#include <vector>

#include "core/contract/contract.h"
#include "core/measure/log_reader.h"
#include "core/trial/receipt.h"

namespace infrarsi {

struct JobLine {
    double t_s = 0;
    LogReading reading;
};

struct JobOutput {
    std::vector<JobLine> lines;         // one a step, in the order of appearance
    std::vector<FailureLine> failures;  // the first of each class and stream, then the root cause if it is another
    std::optional<OutOfMemory> oom;     // the largest need that a line states
};

// corrupt with the line, io. A missing file is an empty output.
[[nodiscard]] Expected<JobOutput> read_job_output(const std::filesystem::path& path, Stack stack);

}  // namespace infrarsi
