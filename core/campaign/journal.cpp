#include "core/campaign/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/json.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kFileName = "events.jsonl";
constexpr std::size_t kLimitBytes = std::size_t{1} << 30;
constexpr std::array kReserved = {"seq", "t_wall", "t_mono_ns", "type", "prev", "mac"};

std::string mac_of(const json& event, std::string_view key) {
    json body = event;
    body.erase("mac");
    return hmac_sha256_hex(key, canonical_json(body));
}

// One verified line, or why it does not verify.
Expected<json> verify_line(std::string_view line, std::string_view key, const std::string& prev, std::size_t seq) {
    json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_discarded() || !event.is_object()) return fail(ErrorKind::corrupt, "the line is not a JSON object");
    const auto text = [&](const char* name) {
        const auto it = event.find(name);
        return it != event.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    if (!event.contains("seq") || !event["seq"].is_number_unsigned() || event["seq"].get<std::size_t>() != seq) {
        return fail(ErrorKind::corrupt, "expected event number {}: a line was removed, repeated or moved", seq);
    }
    if (text("prev") != prev) return fail(ErrorKind::corrupt, "it does not continue the line before it");
    if (!digests_equal(text("mac"), mac_of(event, key))) {
        return fail(ErrorKind::corrupt, "its signature does not verify: it was edited, or signed with another key");
    }
    return event;
}

}  // namespace

Expected<JournalRead> read_journal(const fs::path& run_dir, std::string_view key) {
    const fs::path path = run_dir / kFileName;
    INFRARSI_ASSIGN(const std::string text, read_file(path, kLimitBytes));
    JournalRead read;
    std::string prev;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = text.find('\n', at);
        if (end == std::string::npos) {  // a write that never ended; its event never happened
            read.torn = true;
            break;
        }
        auto event = verify_line(std::string_view(text).substr(at, end - at), key, prev, read.events.size());
        if (!event) {
            // A last line that was cut inside and then closed by nothing else is torn as well.
            if (end + 1 == text.size() && json::parse(text.substr(at, end - at), nullptr, false).is_discarded()) {
                read.torn = true;
                break;
            }
            const int line = static_cast<int>(read.events.size()) + 1;
            return fail_at(ErrorKind::corrupt, {path.string(), line},
                           "the journal does not verify: {}; restore it from a copy, or start a new run",
                           event.error().message());
        }
        prev = (*event)["mac"].get<std::string>();
        read.events.push_back(std::move(*event));
        at = end + 1;
        read.good_bytes = at;
    }
    return read;
}

struct Journal::Impl {
    fs::path path;
    std::string key;
    Clock* clock = nullptr;
    int fd = -1;
    std::size_t bytes = 0;
    std::string prev;
    std::vector<json> events;

    ~Impl() {
        if (fd >= 0) ::close(fd);
    }
};

Journal::Journal() : impl_(std::make_unique<Impl>()) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Expected<Journal> Journal::create(const fs::path& run_dir, std::string key, Clock& clock) {
    INFRARSI_TRY(make_folders(run_dir));
    Journal journal;
    Impl& impl = *journal.impl_;
    impl.path = run_dir / kFileName;
    impl.key = std::move(key);
    impl.clock = &clock;
    impl.fd = ::open(impl.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (impl.fd < 0 && errno == EEXIST) {
        return fail(ErrorKind::conflict, "{} has a journal already: use `infrarsi run --resume {}`", run_dir.string(),
                    run_dir.string());
    }
    if (impl.fd < 0) return fail(ErrorKind::io, "cannot create {}: {}", impl.path.string(), errno_text(errno));
    sync_folder(run_dir);
    return journal;
}

Expected<Journal> Journal::open(const fs::path& run_dir, std::string key, Clock& clock) {
    INFRARSI_ASSIGN(JournalRead read, read_journal(run_dir, key));
    Journal journal;
    Impl& impl = *journal.impl_;
    impl.path = run_dir / kFileName;
    impl.key = std::move(key);
    impl.clock = &clock;
    impl.fd = ::open(impl.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (impl.fd < 0) return fail(ErrorKind::io, "cannot append to {}: {}", impl.path.string(), errno_text(errno));
    if (read.torn && ::ftruncate(impl.fd, static_cast<off_t>(read.good_bytes)) != 0) {
        return fail(ErrorKind::io, "cannot drop the torn last line of {}: {}", impl.path.string(), errno_text(errno));
    }
    impl.bytes = read.good_bytes;
    if (!read.events.empty()) impl.prev = read.events.back()["mac"].get<std::string>();
    impl.events = std::move(read.events);
    return journal;
}

Expected<void> Journal::append(const std::string& type, json body) {
    Impl& impl = *impl_;
    for (const char* name : kReserved) INFRARSI_CHECK(!body.contains(name), "an event's body has a reserved key");
    if (body.is_null()) body = json::object();
    body["seq"] = impl.events.size();
    body["t_wall"] = impl.clock->wall_s();
    body["t_mono_ns"] = impl.clock->monotonic().count();
    body["type"] = type;
    body["prev"] = impl.prev;
    // What is signed is what a reader will parse: NaN becomes null before the signature, not after it.
    body = json::parse(canonical_json(body));
    body["mac"] = mac_of(body, impl.key);
    const std::string line = canonical_json(body) + "\n";
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t count = ::write(impl.fd, line.data() + done, line.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int error = errno;
            const bool undone = ::ftruncate(impl.fd, static_cast<off_t>(impl.bytes)) == 0;
            return fail(error == ENOSPC || error == EDQUOT ? ErrorKind::resource : ErrorKind::io,
                        "cannot write the journal {}: {}; {}free some space and use `infrarsi run --resume`",
                        impl.path.string(), errno_text(error), undone ? "nothing was lost, " : "");
        }
        done += static_cast<std::size_t>(count);
    }
    if (::fsync(impl.fd) != 0) {
        return fail(ErrorKind::io, "cannot flush the journal {}: {}", impl.path.string(), errno_text(errno));
    }
    impl.bytes += line.size();
    impl.prev = body["mac"].get<std::string>();
    impl.events.push_back(std::move(body));
    return {};
}

const std::vector<json>& Journal::events() const {
    return impl_->events;
}

}  // namespace infrarsi
