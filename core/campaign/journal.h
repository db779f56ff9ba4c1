#pragma once
// The campaign's append-only event log (DESIGN §4). One JSON object a line: {seq, t_wall, t_mono_ns, type, …, prev,
// mac}; mac = HMAC-SHA256(key, line without mac), prev = the mac before it. Every other state is a fold over it.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/expected.h"

namespace infrarsi {

struct JournalRead;

class Journal {
public:
    // Creates events.jsonl in `run_dir`, or opens it to append: verifies every line, drops a torn last line (truncating
    // the file), and continues the chain. corrupt names the line that does not verify; conflict when it exists and
    // `create`.
    [[nodiscard]] static Expected<Journal> create(const std::filesystem::path& run_dir, std::string key, Clock& clock);
    [[nodiscard]] static Expected<Journal> open(const std::filesystem::path& run_dir, std::string key, Clock& clock);
    Journal(Journal&&) noexcept;
    Journal& operator=(Journal&&) noexcept;
    ~Journal();

    // Appends and fsyncs. `body` must not have the reserved keys. resource when the disk is full: nothing was appended.
    [[nodiscard]] Expected<void> append(const std::string& type, nlohmann::json body);

    [[nodiscard]] const std::vector<nlohmann::json>& events() const;

private:
    Journal();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct JournalRead {
    std::vector<nlohmann::json> events;
    bool torn = false;           // a last line was cut and dropped
    std::size_t good_bytes = 0;  // where the verified part ends
};

// Reads without opening for writing: for report, attach and verify.
[[nodiscard]] Expected<JournalRead> read_journal(const std::filesystem::path& run_dir, std::string_view key);

}  // namespace infrarsi
