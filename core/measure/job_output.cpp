#include "core/measure/job_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/measure/failure_scan.h"
#include "core/measure/jsonl.h"

namespace infrarsi {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFailures = 64;

// {"t":ns,"s":"o"|"e","l":"text"} as the agent writes it. Parsing these by hand would be faster than the JSON library,
// but the text is the job's, and only a real parser is right about what it may hold.
struct OutputRow {
    double t_s = 0;
    bool is_error = false;
    std::string text;
};

OutputRow to_row(const json& object) {
    OutputRow row;
    row.t_s = object.at("t").get<double>() / 1e9;
    row.is_error = object.at("s").get_ref<const std::string&>() == "e";
    row.text = object.at("l").get<std::string>();
    return row;
}

class OutputReader {
public:
    explicit OutputReader(Stack stack) : readers_{make_log_reader(stack), make_log_reader(stack)} {}

    void see(const OutputRow& row) {
        const int line = ++line_numbers_[row.is_error ? 1 : 0];
        const auto text = clean_line(row.text);
        name_exception(row);
        scan(row, row.text, line);
        if (auto reading = readers_[row.is_error ? 1 : 0]->read(text)) {
            keep(row, std::move(*reading));
        }
    }

    JobOutput finish() {
        auto& failures = output_.failures;
        if (const auto& root = primary_.line()) {
            const auto is_root = [&](const FailureLine& f) { return f.stream == root->stream && f.line == root->line; };
            // The root cause leads: it is what the verdict names.
            const auto it = std::find_if(failures.begin(), failures.end(), is_root);
            if (it == failures.end()) {
                failures.insert(failures.begin(), *root);
            } else {
                std::rotate(failures.begin(), it, it + 1);
            }
        }
        return std::move(output_);
    }

private:
    // A traceback is named by its exception, the first line after it that is not indented.
    void name_exception(const OutputRow& row) {
        auto& open = open_traceback_[row.is_error ? 1 : 0];
        if (!open || row.text.empty() || row.text.front() == ' ' || row.text.front() == '\t') return;
        output_.failures[*open].text = row.text.substr(0, 2000);
        open.reset();
    }

    void scan(const OutputRow& row, std::string_view text, int line) {
        const auto signature = match_failure(text);
        if (!signature || signature->warning) {
            return;
        }
        FailureLine failure{std::string(signature->failure_class), std::string(text.substr(0, 2000)),
                            row.is_error ? "stderr" : "stdout", line, row.t_s};
        if (failure.failure_class.starts_with("oom_")) {
            const auto oom = read_out_of_memory(text);
            if (oom && (!output_.oom || oom->need_gib > output_.oom->need_gib)) {
                output_.oom = oom;
            }
        }
        // A job that prints one error a thousand times tells it once; collective lines are kept up to a limit because
        // their time decides (before or after the last update).
        const bool is_new = seen_.insert({failure.failure_class, row.is_error}).second;
        if ((is_new || failure.failure_class == "collective") && output_.failures.size() < kMostFailures) {
            output_.failures.push_back(failure);
            if (failure.text.starts_with("Traceback (")) {
                open_traceback_[row.is_error ? 1 : 0] = output_.failures.size() - 1;
            }
        }
        primary_.see(*signature, std::move(failure));
    }

    void keep(const OutputRow& row, LogReading reading) {
        const bool is_bar = !reading.loss && !reading.grad_norm;
        if (is_bar && rich_) {
            return;
        }
        if (!is_bar && !rich_) {
            output_.lines.clear();  // bars that came before the first real line were of something else
            rich_ = true;
        }
        // Several ranks may print the same step: the last arrival is the slowest rank's.
        if (!output_.lines.empty() && output_.lines.back().reading.step == reading.step) {
            output_.lines.back().t_s = row.t_s;
            return;
        }
        if (!output_.lines.empty() && output_.lines.back().reading.step > reading.step) {
            return;
        }
        output_.lines.push_back({row.t_s, std::move(reading)});
    }

    std::unique_ptr<LogReader> readers_[2];
    int line_numbers_[2] = {0, 0};
    std::set<std::pair<std::string, bool>> seen_;
    std::optional<std::size_t> open_traceback_[2];  // index into the failures
    PrimaryFailure primary_;
    JobOutput output_;
    bool rich_ = false;
};

}  // namespace

Expected<JobOutput> read_job_output(const std::filesystem::path& path, Stack stack) {
    OutputReader reader(stack);
    INFRARSI_TRY(read_jsonl(path, [&](const json& row) { reader.see(to_row(row)); }));
    return reader.finish();
}

}  // namespace infrarsi
