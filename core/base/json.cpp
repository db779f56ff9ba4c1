#include "core/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/files.h"

namespace infrarsi {

Expected<nlohmann::json> parse_json(std::string_view text, const std::string& name) {
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
        const std::string_view before = text.substr(0, at);
        const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
        const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
        std::string reason = error.what();
        if (const auto colon = reason.rfind(": "); colon != std::string::npos) reason = reason.substr(colon + 2);
        return fail_at(ErrorKind::invalid_input, {name, line, static_cast<int>(at - line_start) + 1},
                       "not valid JSON: {}", reason);
    } catch (const nlohmann::json::exception& error) {
        return fail_at(ErrorKind::invalid_input, {name}, "not valid JSON: {}", error.what());
    }
}

Expected<nlohmann::json> read_json(const std::filesystem::path& path) {
    INFRARSI_ASSIGN(const std::string text, read_file(path));
    return parse_json(text, path.string());
}

std::string canonical_json(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string pretty_json(const nlohmann::json& json) {
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace infrarsi
