#include "core/text/line_index.h"

#include <algorithm>

#include "core/text/utf8.h"

namespace infrarsi {

namespace {

// Units that a code point of `bytes` bytes takes: only the four-byte ones need a surrogate pair.
std::size_t units_of(std::size_t bytes, ColumnUnit unit) {
    if (unit == ColumnUnit::utf8) return bytes;
    return bytes == 4 ? 2 : 1;
}

}  // namespace

LineIndex::LineIndex(std::string_view text) : text_(text), starts_{0} {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))) {
            starts_.push_back(i + 1);
        }
    }
}

std::string_view LineIndex::line(std::size_t number) const {
    if (number >= starts_.size()) return {};
    const std::size_t end = number + 1 < starts_.size() ? starts_[number + 1] : text_.size();
    std::string_view content = text_.substr(starts_[number], end - starts_[number]);
    if (content.ends_with('\n')) content.remove_suffix(1);
    if (content.ends_with('\r')) content.remove_suffix(1);
    return content;
}

LineColumn LineIndex::position(std::size_t offset, ColumnUnit unit) const {
    offset = std::min(offset, text_.size());
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    const auto number = static_cast<std::size_t>(after - starts_.begin()) - 1;
    const std::string_view content = line(number);
    const std::size_t wanted = std::min(offset - starts_[number], content.size());
    LineColumn result{number, 0};
    for (std::size_t at = 0; at < wanted;) {
        const std::size_t bytes = utf8_length(content, at);
        if (at + bytes > wanted) break;
        result.column += units_of(bytes, unit);
        at += bytes;
    }
    return result;
}

std::size_t LineIndex::offset(LineColumn position, ColumnUnit unit) const {
    if (position.line >= starts_.size()) return text_.size();
    const std::string_view content = line(position.line);
    std::size_t at = 0;
    for (std::size_t column = 0; at < content.size();) {
        const std::size_t bytes = utf8_length(content, at);
        column += units_of(bytes, unit);
        if (column > position.column) break;
        at += bytes;
    }
    return starts_[position.line] + at;
}

}  // namespace infrarsi
