#pragma once
// Unified diffs on in-memory text: parse, apply with offset search, reverse, make. Our own, because libgit2's searches
// no offset and follows symbolic links (notes/build.md §7).

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"

namespace infrarsi {

struct Hunk {
    int old_start = 0, old_count = 0, new_start = 0, new_count = 0;  // 1-based lines
    std::vector<std::string> lines;  // each with its first character ' ', '-', '+'; without newline
    bool old_no_newline = false, new_no_newline = false;
    int line = 0;  // in the diff, 1-based
};

struct FileDiff {
    std::string old_path, new_path;  // without a/ b/; empty: /dev/null
    std::vector<Hunk> hunks;
};

// invalid_input with the line in the diff; unsupported for binary, renames and mode changes; paths that are absolute or
// climb out with `..` are invalid_input.
[[nodiscard]] Expected<std::vector<FileDiff>> parse_diff(std::string_view diff);

// Applies one file's hunks; the search for a moved hunk is exact in content. conflict says which hunk, where it was
// looked for and the first line that differs.
[[nodiscard]] Expected<std::string> apply_hunks(std::string_view old_text, const FileDiff& diff);

[[nodiscard]] FileDiff reverse(const FileDiff& diff);

// A unified diff (`--- a/path`, `+++ b/path`) with `context` lines; empty when equal. A missing side is nullptr.
[[nodiscard]] std::string make_diff(const std::string& path, const std::string* old_text, const std::string* new_text,
                                    int context = 3);

// Hunks and paths only, canonical spacing: equal changes have equal normal forms.
[[nodiscard]] Expected<std::string> normalise_diff(std::string_view diff);

}  // namespace infrarsi
