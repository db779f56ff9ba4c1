#include "core/measure/jsonl.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace infrarsi {
namespace {

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Expected<void> read_lines(const std::filesystem::path& path, const JsonlLine& line) {
    const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
    if (!file) {
        if (errno == ENOENT) {
            return {};
        }
        return fail(ErrorKind::io, "cannot read {}: {}", path.string(), errno_text(errno));
    }
    std::string held;
    std::vector<char> block(1u << 18);
    int number = 0;
    while (const auto size = std::fread(block.data(), 1, block.size(), file.get())) {
        std::string_view rest(block.data(), size);
        for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
            ++number;
            if (held.empty()) {
                INFRARSI_TRY(line(number, rest.substr(0, end), true));
            } else {
                held += rest.substr(0, end);
                INFRARSI_TRY(line(number, held, true));
                held.clear();
            }
            rest.remove_prefix(end + 1);
        }
        held += rest;
    }
    if (std::ferror(file.get()) != 0) {
        return fail(ErrorKind::io, "cannot read {}: {}", path.string(), errno_text(errno));
    }
    if (!held.empty()) {
        INFRARSI_TRY(line(number + 1, held, false));
    }
    return {};
}

Expected<void> read_jsonl(const std::filesystem::path& path, const JsonlRow& row) {
    return read_lines(path, [&](int number, std::string_view text, bool complete) -> Expected<void> {
        const auto parsed = nlohmann::json::parse(text, nullptr, false);
        if (parsed.is_discarded() || !parsed.is_object()) {
            if (!complete) {
                return {};
            }
            return fail_at(ErrorKind::corrupt, {path.string(), number}, "this line is not a JSON object");
        }
        try {
            row(parsed);
        } catch (const nlohmann::json::exception& error) {
            return fail_at(ErrorKind::corrupt, {path.string(), number}, "a field has the wrong type: {}", error.what());
        }
        return {};
    });
}

}  // namespace infrarsi
