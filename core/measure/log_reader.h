#pragma once
// Readers of a job's own log lines. One interface for every stack; plain-DDP styles now (nanoGPT, build-nanogpt,
// key–value lines), the other stacks later (data/log_formats.yaml). Constant memory: a line in, at most one reading
// out.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/contract/contract.h"

namespace infrarsi {

struct LogReading {
    std::int64_t step = 0;  // as printed
    std::optional<double> loss, step_time_s, grad_norm, lr;
    std::optional<std::int64_t> tokens_per_update;
};

class LogReader {
public:
    virtual ~LogReader() = default;
    // `line` without its newline; colour codes and rank prefixes are already removed (clean_line).
    [[nodiscard]] virtual std::optional<LogReading> read(std::string_view line) = 0;
};

// For `auto_`, a reader that recognises every style it knows and stays with the first that matched twice.
[[nodiscard]] std::unique_ptr<LogReader> make_log_reader(Stack stack);

// Removes ANSI colours and launcher prefixes such as "[rank0]:" or "[default0]:"; a progress bar's last \r part is
// kept.
[[nodiscard]] std::string clean_line(std::string_view raw);

}  // namespace infrarsi
