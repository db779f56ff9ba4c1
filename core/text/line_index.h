#pragma once
// Byte offsets ⇄ lines and columns. Editors count columns in UTF-16 code units unless they agreed on UTF-8; the engine
// counts bytes. Lines and columns here are 0-based, as in LSP 3.17 (Place in core/base/error.h is 1-based).

#include <cstddef>
#include <string_view>
#include <vector>

namespace infrarsi {

enum class ColumnUnit { utf8, utf16 };

struct LineColumn {
    std::size_t line = 0;
    std::size_t column = 0;

    bool operator==(const LineColumn&) const = default;
};

class LineIndex {
public:
    // Borrows `text`, which must outlive the index. Lines end in \n, \r\n or \r, as LSP has it. O(n).
    explicit LineIndex(std::string_view text);

    [[nodiscard]] std::size_t line_count() const { return starts_.size(); }

    // Without its line end; empty beyond the last line.
    [[nodiscard]] std::string_view line(std::size_t number) const;

    // An offset inside a code point counts as its start; one beyond the text as its end. O(log lines + column).
    [[nodiscard]] LineColumn position(std::size_t offset, ColumnUnit unit) const;

    // Clamped: a column beyond the line is the line's end, a line beyond the text is the text's end, and a column
    // inside a code point (half a surrogate pair) is the code point's start.
    [[nodiscard]] std::size_t offset(LineColumn position, ColumnUnit unit) const;

private:
    std::string_view text_;
    std::vector<std::size_t> starts_;
};

}  // namespace infrarsi
