#include "core/measure/failure_scan.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace infrarsi {
namespace {

enum class Severity { fatal, error, warning };

struct Entry {
    std::string_view id, failure_class;
    int rank;
    Severity severity;
    bool secondary;
    const char* regex;
    std::string_view literals;  // separated by \n
};

constexpr Entry kEntries[] = {
#include "core/measure/failure_signatures.inc"
};
constexpr std::size_t kEntryCount = std::size(kEntries);

constexpr std::size_t kWindow = 4;  // bytes of a literal that are looked for first
constexpr std::size_t kMaxLine = 16384;

std::uint32_t load_window(const char* at) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, kWindow);
    return word;
}

std::uint32_t window_hash(std::uint32_t word) {
    return (word * 0x9E3779B1u) >> 16;
}

// How unusual a window of a literal is: what stands in few ordinary lines should wake the expressions.
int rarity(std::string_view window) {
    int score = 0;
    for (const char c : window) {
        const bool lower = c >= 'a' && c <= 'z';
        score += lower ? 1 : (c == ' ' || c == '.' || (c >= '0' && c <= '9')) ? 0 : 3;
    }
    return score;
}

// Finds which signatures could match a line: a bitmap over hashes of four bytes, then the literals themselves.
class Prefilter {
public:
    Prefilter() {
        for (std::size_t entry = 0; entry < kEntryCount; ++entry) {
            std::string_view rest = kEntries[entry].literals;
            while (!rest.empty()) {
                const auto end = std::min(rest.find('\n'), rest.size());
                add(rest.substr(0, end), static_cast<std::uint16_t>(entry));
                rest.remove_prefix(std::min(end + 1, rest.size()));
            }
        }
        std::sort(literals_.begin(), literals_.end(), [](const auto& a, const auto& b) { return a.hash < b.hash; });
    }

    // Calls `found(entry)` for each literal in the line; an entry may come more than once.
    template <class Found>
    void scan(std::string_view line, const Found& found) const {
        if (line.size() < kWindow) {
            return;
        }
        const char* const end = line.data() + line.size() - kWindow;
        for (const char* at = line.data(); at <= end; ++at) {
            const auto hash = window_hash(load_window(at));
            if ((bits_[hash >> 6] >> (hash & 63) & 1) != 0) {
                verify(line, at, hash, found);
            }
        }
    }

private:
    struct Literal {
        std::uint32_t hash;
        std::uint16_t entry, offset;
        std::string_view text;
    };

    // "nan" and "inf" are values only where the word ends; "INFO" and "name" are in half of all log lines.
    static bool may_end(std::string_view line, std::size_t end, const Literal& literal) {
        if (literal.text.size() > kWindow || end >= line.size()) {
            return true;
        }
        return std::isalpha(static_cast<unsigned char>(line[end])) == 0 || line.substr(end).starts_with("inity");
    }

    void add(std::string_view text, std::uint16_t entry) {
        std::size_t best = 0;
        for (std::size_t offset = 1; offset + kWindow <= text.size(); ++offset) {
            if (rarity(text.substr(offset, kWindow)) > rarity(text.substr(best, kWindow))) {
                best = offset;
            }
        }
        const auto hash = window_hash(load_window(text.data() + best));
        bits_[hash >> 6] |= std::uint64_t{1} << (hash & 63);
        literals_.push_back({hash, entry, static_cast<std::uint16_t>(best), text});
    }

    template <class Found>
    void verify(std::string_view line, const char* at, std::uint32_t hash, const Found& found) const {
        auto it = std::lower_bound(literals_.begin(), literals_.end(), hash,
                                   [](const Literal& literal, std::uint32_t wanted) { return literal.hash < wanted; });
        for (; it != literals_.end() && it->hash == hash; ++it) {
            const auto position = static_cast<std::size_t>(at - line.data());
            if (position >= it->offset && line.substr(position - it->offset).starts_with(it->text) &&
                may_end(line, position - it->offset + it->text.size(), *it)) {
                found(it->entry);
            }
        }
    }

    std::array<std::uint64_t, 1024> bits_{};
    std::vector<Literal> literals_;
};

const Prefilter& prefilter() {
    static const Prefilter filter;
    return filter;
}

// Compiled when the first suspicious line comes: most runs never need them.
const std::vector<std::unique_ptr<const RE2>>& expressions() {
    static const auto compiled = [] {
        RE2::Options options;
        options.set_log_errors(false);
        std::vector<std::unique_ptr<const RE2>> all;
        for (const auto& entry : kEntries) {
            all.push_back(std::make_unique<const RE2>(entry.regex, options));
            INFRARSI_CHECK(all.back()->ok(), "a failure signature is not a valid RE2 expression");
        }
        return all;
    }();
    return compiled;
}

double to_gib(double amount, std::string_view unit) {
    if (unit == "bytes" || unit == "B") {
        return amount / (1024.0 * 1024.0 * 1024.0);
    }
    if (unit == "KiB") {
        return amount / (1024.0 * 1024.0);
    }
    if (unit == "MiB") {
        return amount / 1024.0;
    }
    return unit == "TiB" ? amount * 1024.0 : amount;
}

// The amount after `before` ("Tried to allocate 2.00 GiB"), or before `after` ("1.14 GiB already allocated").
std::optional<double> amount_at(std::string_view line, std::string_view before) {
    const auto at = line.find(before);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    auto rest = line.substr(at + before.size());
    while (rest.starts_with(' ')) {
        rest.remove_prefix(1);
    }
    std::size_t digits = 0;
    while (digits < rest.size() && (std::isdigit(static_cast<unsigned char>(rest[digits])) || rest[digits] == '.')) {
        ++digits;
    }
    if (digits == 0 || digits > 24) {
        return std::nullopt;
    }
    const double amount = std::strtod(std::string(rest.substr(0, digits)).c_str(), nullptr);
    rest.remove_prefix(digits);
    while (rest.starts_with(' ')) {
        rest.remove_prefix(1);
    }
    for (const std::string_view unit : {"bytes", "KiB", "MiB", "GiB", "TiB", "B"}) {
        if (rest.starts_with(unit)) {
            return to_gib(amount, unit);
        }
    }
    return std::nullopt;
}

std::optional<double> amount_before(std::string_view line, std::string_view after) {
    const auto at = line.find(after);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const auto start = line.find_last_of("(;,", at);
    return amount_at(line.substr(start == std::string_view::npos ? 0 : start + 1, at), "");
}

}  // namespace

std::optional<FailureSignature> match_failure(std::string_view line) {
    line = line.substr(0, kMaxLine);
    std::optional<std::size_t> best;
    prefilter().scan(line, [&](std::size_t index) {
        const auto& entry = kEntries[index];
        if (best && (*best == index || kEntries[*best].rank <= entry.rank)) {
            return;
        }
        if (RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *expressions()[index])) {
            best = index;
        }
    });
    if (!best) {
        return std::nullopt;
    }
    const auto& entry = kEntries[*best];
    return FailureSignature{entry.id, entry.failure_class, entry.rank, entry.secondary,
                            entry.severity == Severity::warning};
}

std::optional<FailureLine> scan_failure(std::string_view line) {
    const auto signature = match_failure(line);
    if (!signature || signature->warning) {
        return std::nullopt;
    }
    FailureLine failure;
    failure.failure_class = signature->failure_class;
    failure.text = line.substr(0, 2000);
    return failure;
}

void PrimaryFailure::see(const FailureSignature& signature, FailureLine line) {
    if (signature.warning) {
        return;
    }
    const int order = signature.rank + (signature.secondary ? 1000 : 0);
    if (!line_ || order < order_) {
        line_ = std::move(line);
        order_ = order;
    }
}

std::optional<double> tried_gib(std::string_view line) {
    for (const std::string_view before : {"ried to allocate", "Unable to allocate", "failed to allocate"}) {
        if (const auto amount = amount_at(line, before)) {
            return amount;
        }
    }
    return std::nullopt;
}

std::optional<OutOfMemory> read_out_of_memory(std::string_view line) {
    const auto tried = tried_gib(line);
    if (!tried) {
        return std::nullopt;
    }
    OutOfMemory oom;
    oom.tried_gib = *tried;
    oom.line = line.substr(0, 2000);
    if (const auto own = amount_at(line, "this process has")) {
        oom.in_use_gib = *own;
    } else if (auto capacity = amount_at(line, "total capacity of");
               capacity || (capacity = amount_at(line, "total capacty of"))) {
        // Without the process's own figure (a container with its own process numbers): what is not free.
        oom.in_use_gib = std::max(0.0, *capacity - amount_at(line, "of which").value_or(*capacity));
    } else if (const auto total = amount_before(line, " total capacity;")) {
        oom.in_use_gib = std::max(0.0, *total - amount_before(line, " free;").value_or(*total));
    } else if (const auto allocated = amount_before(line, " already allocated")) {
        oom.in_use_gib = *allocated;
    }
    oom.need_gib = oom.in_use_gib + oom.tried_gib;
    return oom;
}

}  // namespace infrarsi
