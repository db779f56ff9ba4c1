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

// Whether the counts in a hunk's header bind. Language models count badly: with `recount` the header's counts are
// ignored and a hunk goes on as long as its lines look like one.
enum class HunkCounts { exact, recount };

// Free text before, between and after the file sections is skipped (a commit message, a Markdown fence), `diff --git`
// lines may be missing, and a diff that was wholly carried in CRLF is read as LF. A new or deleted file may have no
// hunks (it is empty). invalid_input with the line in the diff: no file section in a text that is not blank, counts
// that do not fit, two sections for one file, paths that are absolute or climb out with `..`; unsupported: binary,
// renames, mode changes, symbolic links. O(n).
[[nodiscard]] Expected<std::vector<FileDiff>> parse_diff(std::string_view diff, HunkCounts counts = HunkCounts::exact);

// Applies one file's hunks in order. A hunk that does not fit at its line is searched for outwards from there (before
// wins over after at equal distance), exact in content; line ends follow the file (LF or CRLF), and whether the last
// line ends in a newline is not held against a hunk that does not mention it. conflict says which hunk, where it was
// looked for and the first line that differs, with the place in the file. A new file (old_path empty) needs an empty
// old_text, a deleted one must come out empty. O(lines · hunks) at worst.
[[nodiscard]] Expected<std::string> apply_hunks(std::string_view old_text, const FileDiff& diff);

// The change that undoes it. Within a run of changes, what is removed comes before what is added.
[[nodiscard]] FileDiff reverse(const FileDiff& diff);

// As text again, readable by parse_diff and by git.
[[nodiscard]] std::string format_diff(const std::vector<FileDiff>& files);

// A unified diff (`--- a/path`, `+++ b/path`) with `context` lines; empty when equal. A missing side is nullptr. The
// search is patience on lines that occur once in each text, then Myers, bounded: texts that share little get a correct
// diff that may not be the shortest. 10,000 lines with small edits cost a few milliseconds.
[[nodiscard]] std::string make_diff(const std::string& path, const std::string* old_text, const std::string* new_text,
                                    int context = 3);

// Files sorted by path, context and changes without line numbers, prefixes or headers: equal changes have equal normal
// forms wherever in the file they stand. Errors as parse_diff.
[[nodiscard]] Expected<std::string> normalise_diff(std::string_view diff);

}  // namespace infrarsi
