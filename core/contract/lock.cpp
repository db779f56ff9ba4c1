#include "core/contract/lock.h"

#include <atomic>
#include <charconv>
#include <thread>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/contract/scope.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kHeader =
    "# infrarsi.lock: SHA-256 digests of the contract (infrarsi.yaml) and of the files that it freezes.\n"
    "# Written by `infrarsi init`; read what changed, then commit it. Do not edit it by hand.\n";
constexpr std::string_view kFormat = "infrarsi-lock-v1";
constexpr std::size_t kDigestLength = 64;
constexpr unsigned kMostThreads = 8;
constexpr std::string_view kWayOut = "write it anew with `infrarsi init` and review what changed";

class FrozenFinder {
public:
    FrozenFinder(const Contract& contract, std::vector<Glob> globs) : root_(contract.root), globs_(std::move(globs)) {
        contract_file_ = contract.file.lexically_relative(contract.root).generic_string();
    }

    Expected<std::vector<std::string>> run() {
        INFRARSI_TRY(walk(""));
        return std::move(found_);
    }

private:
    bool is_skipped(const std::string& name) const {
        if (name == ".git" || name == ".infrarsi") return true;
        static const std::vector<std::string> kHeavy{"node_modules", "__pycache__", ".venv"};
        if (std::find(kHeavy.begin(), kHeavy.end(), name) == kHeavy.end()) return false;
        return std::none_of(globs_.begin(), globs_.end(), [&](const Glob& glob) { return glob.names_folder(name); });
    }

    bool may_match_below(const std::string& path) const {
        return std::any_of(globs_.begin(), globs_.end(), [&](const Glob& glob) { return glob.may_match_below(path); });
    }

    Expected<void> walk(const std::string& folder) {
        std::error_code error;
        for (fs::directory_iterator it(root_ / folder, error), end; !error && it != end; it.increment(error)) {
            const std::string name = it->path().filename().string();
            const std::string path = folder.empty() ? name : folder + '/' + name;
            std::error_code status_error;
            const fs::file_type type = it->symlink_status(status_error).type();
            if (type == fs::file_type::directory) {
                if (!is_skipped(name) && may_match_below(path)) INFRARSI_TRY(walk(path));
                continue;
            }
            if (type != fs::file_type::regular && type != fs::file_type::symlink) continue;
            if (path == contract_file_ || path == "infrarsi.yaml" || path == "infrarsi.lock") continue;
            // A linked folder stands for all that a pattern would match below it.
            const bool linked_folder = type == fs::file_type::symlink && it->is_directory(status_error);
            const bool matches =
                std::any_of(globs_.begin(), globs_.end(), [&](const Glob& glob) { return glob.matches(path); });
            if (matches || (linked_folder && !is_skipped(name) && may_match_below(path))) found_.push_back(path);
        }
        if (!error) return {};
        return fail(ErrorKind::io, "cannot read the folder {}: {}", (root_ / folder).string(), error.message());
    }

    fs::path root_;
    std::vector<Glob> globs_;
    std::string contract_file_;
    std::vector<std::string> found_;
};

Expected<std::string> digest_of(const fs::path& path) {
    std::error_code error;
    if (!fs::is_symlink(path, error)) return sha256_file(path);
    const fs::path target = fs::read_symlink(path, error);
    if (error) return fail(ErrorKind::io, "cannot read the link {}: {}", path.string(), error.message());
    std::string content;
    if (fs::is_regular_file(path, error)) {
        INFRARSI_ASSIGN(content, sha256_file(path));
    }
    return sha256_hex(fmt::format("link\n{}\n{}", target.string(), content));
}

// A path on one line: what is not printable, and the backslash, as \xNN.
std::string escape(const std::string& path) {
    std::string text;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f || c == '\\') {
            text += fmt::format("\\x{:02x}", byte);
        } else {
            text += c;
        }
    }
    return text;
}

std::optional<std::string> unescape(std::string_view text) {
    std::string path;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\') {
            path += text[i];
            continue;
        }
        unsigned byte = 0;
        const char* digits = text.data() + i + 2;
        if (i + 3 >= text.size() || text[i + 1] != 'x') return std::nullopt;
        if (const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
            error != std::errc{} || end != digits + 2) {
            return std::nullopt;
        }
        path += static_cast<char>(byte);
        i += 3;
    }
    return path;
}

bool is_digest(std::string_view text) {
    const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return text.size() == kDigestLength && std::all_of(text.begin(), text.end(), hex);
}

class LockParser {
public:
    LockParser(std::string_view text, const fs::path& file) : text_(text), file_(file) {}

    Expected<Lock> run() {
        if (next() != kFormat) return corrupt(fmt::format("expected {}", kFormat));
        Lock lock;
        const std::string_view contract = next();
        if (!contract.starts_with("contract ") || !is_digest(contract.substr(9)))
            return corrupt("expected `contract` and its digest");
        lock.contract_digest = contract.substr(9);
        const std::string_view frozen = next();
        std::size_t count = 0;
        const char* end = frozen.data() + frozen.size();
        if (!frozen.starts_with("frozen ") || std::from_chars(frozen.data() + 7, end, count).ptr != end) {
            return corrupt("expected `frozen` and the number of files");
        }
        for (std::size_t i = 0; i < count; ++i) {
            const std::string_view line = next();
            if (line.empty()) return corrupt(fmt::format("{} of {} frozen files are here", i, count));
            const auto path = line.size() > kDigestLength + 2 ? unescape(line.substr(kDigestLength + 2)) : std::nullopt;
            const bool spaced = line.size() > kDigestLength && line.substr(kDigestLength, 2) == "  ";
            if (!path || !spaced || !is_digest(line.substr(0, kDigestLength)))
                return corrupt("expected a digest, two spaces and a path");
            if (!lock.frozen.emplace(*path, line.substr(0, kDigestLength)).second)
                return corrupt(*path + " stands twice");
        }
        if (!next().empty()) return corrupt(fmt::format("more than {} frozen files", count));
        return lock;
    }

private:
    // The next line that is neither blank nor a comment; empty at the end.
    std::string_view next() {
        while (!text_.empty()) {
            const auto newline = text_.find('\n');
            std::string_view line = text_.substr(0, newline);
            text_.remove_prefix(newline == std::string_view::npos ? text_.size() : newline + 1);
            ++line_;
            if (line.ends_with('\r')) line.remove_suffix(1);
            last_ = line;
            if (!line.empty() && !line.starts_with('#')) return line;
        }
        last_ = {};
        return {};
    }

    Unexpected corrupt(const std::string& why) const {
        const bool merge = last_.starts_with("<<<<<<<") || last_.starts_with("=======") || last_.starts_with(">>>>>>>");
        return fail_at(ErrorKind::corrupt, {file_.string(), std::max(line_, 1), 0}, "the lock is broken: {}; {}",
                       merge ? "an unresolved merge conflict" : why, kWayOut);
    }

    std::string_view text_, last_;
    fs::path file_;
    int line_ = 0;
};

}  // namespace

Expected<Lock> make_lock(const Contract& contract) {
    std::vector<Glob> globs;
    for (const auto& pattern : contract.frozen) {
        INFRARSI_ASSIGN(Glob glob, Glob::parse(pattern));
        globs.push_back(std::move(glob));
    }
    std::vector<std::string> paths;
    if (!globs.empty()) {
        INFRARSI_ASSIGN(paths, FrozenFinder(contract, std::move(globs)).run());
    }
    std::vector<Expected<std::string>> digests(paths.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < paths.size(); i = next++) digests[i] = digest_of(contract.root / paths[i]);
    };
    {
        // A thread is worth its start from some hundred files on.
        const auto wanted = static_cast<unsigned>(std::min<std::size_t>(paths.size() / 256, kMostThreads));
        std::vector<std::jthread> helpers;
        for (unsigned i = 1; i < std::min(wanted, std::thread::hardware_concurrency()); ++i) helpers.emplace_back(work);
        work();
    }
    Lock lock;
    lock.contract_digest = contract_digest(contract);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (!digests[i]) return wrap(std::move(digests[i]).error(), "locking frozen files");
        lock.frozen.emplace(paths[i], std::move(*digests[i]));
    }
    return lock;
}

std::string format_lock(const Lock& lock) {
    std::string text =
        fmt::format("{}{}\ncontract {}\nfrozen {}\n", kHeader, kFormat, lock.contract_digest, lock.frozen.size());
    for (const auto& [path, digest] : lock.frozen) text += fmt::format("{}  {}\n", digest, escape(path));
    return text;
}

Expected<Lock> parse_lock(std::string_view text, const fs::path& file) {
    return LockParser(text, file).run();
}

Expected<Lock> read_lock(const fs::path& file) {
    INFRARSI_ASSIGN(const std::string text, read_file(file));
    return parse_lock(text, file);
}

Expected<void> write_lock(const Lock& lock, const fs::path& file) {
    return write_file(file, format_lock(lock));
}

std::vector<std::string> compare_locks(const Lock& locked, const Lock& now) {
    std::vector<std::string> sentences;
    if (locked.contract_digest != now.contract_digest) {
        sentences.emplace_back("the contract in infrarsi.yaml is not the one that was locked");
    }
    std::map<std::string, std::string> by_path;
    for (const auto& [path, digest] : locked.frozen) {
        const auto found = now.frozen.find(path);
        if (found == now.frozen.end()) {
            by_path[path] = fmt::format("the frozen file {} is missing", path);
        } else if (found->second != digest) {
            by_path[path] = fmt::format("the frozen file {} has changed", path);
        }
    }
    for (const auto& [path, digest] : now.frozen) {
        if (!locked.frozen.contains(path)) by_path[path] = fmt::format("{} is new among the frozen files", path);
    }
    for (auto& [path, sentence] : by_path) sentences.push_back(std::move(sentence));
    return sentences;
}

}  // namespace infrarsi
