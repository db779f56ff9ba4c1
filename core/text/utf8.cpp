#include "core/text/utf8.h"

namespace infrarsi {

namespace {

// Bytes of the valid sequence at `at`, or 0 (Unicode 15, table 3-7).
std::size_t valid_length(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
    };
    const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead < 0xC2) return 0;
    if (lead < 0xE0) return follows(1) ? 2 : 0;
    if (lead < 0xF0) {
        if (!follows(1) || !follows(2)) return 0;
        if (lead == 0xE0 && byte(1) < 0xA0) return 0;
        if (lead == 0xED && byte(1) >= 0xA0) return 0;
        return 3;
    }
    if (lead > 0xF4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) >= 0x90) return 0;
    return 4;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = valid_length(text, at);
        if (length == 0) return at;
        at += length;
    }
    return std::nullopt;
}

std::size_t utf8_length(std::string_view text, std::size_t offset) {
    const std::size_t length = offset < text.size() ? valid_length(text, offset) : 0;
    return length == 0 ? 1 : length;
}

}  // namespace infrarsi
