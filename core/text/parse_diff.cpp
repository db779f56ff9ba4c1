#include <charconv>

#include "core/text/diff.h"

namespace infrarsi {

namespace {

constexpr std::string_view kDevNull = "/dev/null";

struct HunkHeader {
    int old_start = 0, old_count = 1, new_start = 0, new_count = 1;
};

bool read_int(std::string_view& text, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

std::optional<HunkHeader> read_hunk_header(std::string_view line) {
    HunkHeader header;
    if (!take(line, "@@ -") || !read_int(line, header.old_start)) return std::nullopt;
    if (take(line, ",") && !read_int(line, header.old_count)) return std::nullopt;
    if (!take(line, " +") || !read_int(line, header.new_start)) return std::nullopt;
    if (take(line, ",") && !read_int(line, header.new_count)) return std::nullopt;
    if (!take(line, " @@")) return std::nullopt;
    return header;
}

// git quotes odd paths as C does: "a\tb", "\303\274".
std::string unquote(std::string_view quoted) {
    std::string path;
    for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
        if (quoted[i] != '\\') {
            path += quoted[i];
            continue;
        }
        const char c = quoted[++i];
        if (c >= '0' && c <= '7') {
            int byte = 0;
            for (int digits = 0; digits < 3 && i + 1 < quoted.size() && quoted[i] >= '0' && quoted[i] <= '7';
                 ++digits) {
                byte = byte * 8 + (quoted[i++] - '0');
            }
            --i;
            path += static_cast<char>(byte);
            continue;
        }
        static constexpr std::string_view kLetters = "abtnvfr", kBytes = "\a\b\t\n\v\f\r";
        const auto letter = kLetters.find(c);
        path += letter == std::string_view::npos ? c : kBytes[letter];
    }
    return path;
}

// The rest of a `--- ` or `+++ ` line: a path, perhaps quoted, perhaps with a time after a tab.
std::string read_path(std::string_view rest) {
    if (rest.starts_with('"')) {
        std::size_t end = 1;
        while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
        return unquote(rest.substr(0, std::min(end + 1, rest.size())));
    }
    rest = rest.substr(0, rest.find('\t'));
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    return std::string(rest);
}

bool has_prefix(const std::string& path) {
    return path.size() > 2 && path[1] == '/' && path[0] >= 'a' && path[0] <= 'z';
}

// Takes off a/ and b/ (or i/ w/ c/ o/ of diff.mnemonicPrefix), but not the folder of a diff without prefixes.
void strip_prefixes(std::string& old_path, std::string& new_path) {
    if (old_path.empty() != new_path.empty()) {
        std::string& path = old_path.empty() ? new_path : old_path;
        if (path.starts_with("a/") || path.starts_with("b/")) path.erase(0, 2);
    } else if (has_prefix(old_path) && has_prefix(new_path) && old_path[0] != new_path[0]) {
        old_path.erase(0, 2);
        new_path.erase(0, 2);
    }
    for (std::string* path : {&old_path, &new_path}) {
        while (path->starts_with("./")) path->erase(0, 2);
    }
}

bool leaves_project(const std::string& path) {
    if (path.starts_with('/') || path.starts_with('\\') || path.starts_with('~')) return true;
    if (path.size() > 1 && path[1] == ':') return true;
    for (std::size_t start = 0; start <= path.size();) {
        const std::size_t end = std::min(path.find_first_of("/\\", start), path.size());
        if (std::string_view(path).substr(start, end - start) == "..") return true;
        start = end + 1;
    }
    return path.find('\0') != std::string::npos;
}

// What stands between `diff --git` and the hunks.
struct GitHeader {
    int line = 0;
    std::string path;  // when both sides name the same one
    bool is_new = false, is_deleted = false;
};

class Parser {
public:
    Parser(std::string_view diff, HunkCounts counts) : counts_(counts) {
        while (!diff.empty()) {
            const auto newline = diff.find('\n');
            lines_.push_back(diff.substr(0, newline));
            diff.remove_prefix(newline == std::string_view::npos ? diff.size() : newline + 1);
        }
        // Carried in CRLF as a whole: the CRs belong to the transport. In an LF diff of a CRLF file the headers have
        // none, and those in the lines are content.
        const auto has_return = [](std::string_view line) { return line.ends_with('\r'); };
        if (std::all_of(lines_.begin(), lines_.end(), has_return)) {
            for (auto& line : lines_) line.remove_suffix(1);
        }
    }

    Expected<std::vector<FileDiff>> run() {
        while (at_ < lines_.size()) INFRARSI_TRY(step());
        INFRARSI_TRY(finish_git_header());
        const auto blank = [](std::string_view line) {
            return line.find_first_not_of(" \t\r") == std::string_view::npos;
        };
        if (files_.empty() && !std::all_of(lines_.begin(), lines_.end(), blank)) {
            return fail(ErrorKind::invalid_input,
                        "no file section in the diff; it needs the lines `--- a/path` and `+++ b/path`");
        }
        return std::move(files_);
    }

private:
    std::string_view line(std::size_t index) const {
        return index < lines_.size() ? lines_[index] : std::string_view();
    }
    static int number(std::size_t index) { return static_cast<int>(index) + 1; }

    template <class... Args>
    Unexpected wrong(ErrorKind kind, std::size_t index, detail::FailFormat format, const Args&... args) const {
        return Unexpected(Error(kind,
                                fmt::format("line {} of the diff: {}", number(index),
                                            fmt::vformat(format.text, fmt::make_format_args(args...))),
                                format.where)
                              .at({"", number(index), 0}));
    }

    Expected<void> step() {
        const std::string_view text = line(at_);
        if (text.starts_with("diff --git ")) return open_git_header(text.substr(11));
        if (text.starts_with("--- ") && line(at_ + 1).starts_with("+++ ")) return read_file();
        if (git_) {
            INFRARSI_TRY(read_git_header_line(text));
        } else if (text.starts_with("Binary files ") && text.ends_with(" differ")) {
            return wrong(ErrorKind::unsupported, at_, "a binary file; only text can be patched");
        } else if (read_hunk_header(text)) {
            return wrong(ErrorKind::invalid_input, at_, "a hunk before any `--- a/path` and `+++ b/path`");
        }
        ++at_;
        return {};
    }

    Expected<void> open_git_header(std::string_view sides) {
        INFRARSI_TRY(finish_git_header());
        git_ = GitHeader{};
        git_->line = number(at_);
        // `a/X b/X`: the two halves are equally long; a name that differs is a rename and is refused by its own line.
        if (sides.starts_with('"')) {
            std::string path = read_path(sides);
            std::string copy = path.starts_with("a/") ? "b/" + path.substr(2) : path;
            strip_prefixes(path, copy);
            git_->path = path;
        } else if (sides.size() % 2 == 1) {
            std::string old_path(sides.substr(0, sides.size() / 2)), new_path(sides.substr(sides.size() / 2 + 1));
            strip_prefixes(old_path, new_path);
            if (old_path == new_path) git_->path = old_path;
        }
        ++at_;
        return {};
    }

    Expected<void> read_git_header_line(std::string_view text) {
        if (text.starts_with("rename ") || text.starts_with("copy ") || text.starts_with("similarity index ")) {
            return wrong(ErrorKind::unsupported, at_, "renames and copies; write a deletion and a new file instead");
        }
        if (text.starts_with("old mode ") || text.starts_with("new mode ")) {
            return wrong(ErrorKind::unsupported, at_, "a change of file mode; leave it out of the patch");
        }
        if (text.starts_with("GIT binary patch") || (text.starts_with("Binary files ") && text.ends_with(" differ"))) {
            return wrong(ErrorKind::unsupported, at_, "a binary file; only text can be patched");
        }
        const bool is_new = text.starts_with("new file mode "), is_deleted = text.starts_with("deleted file mode ");
        if (is_new || is_deleted) {
            const std::string_view mode = text.substr(text.rfind(' ') + 1);
            if (mode == "120000" || mode == "160000") {
                return wrong(ErrorKind::unsupported, at_,
                             "a symbolic link or submodule; only regular files can be patched");
            }
            if (is_new && mode != "100644") {
                return wrong(ErrorKind::unsupported, at_, "a new file of mode {}; only 100644 can be made", mode);
            }
            (is_new ? git_->is_new : git_->is_deleted) = true;
        }
        return {};
    }

    // A header without hunks is an empty file that comes or goes, else nothing.
    Expected<void> finish_git_header() {
        if (!git_) return {};
        const GitHeader header = *std::exchange(git_, std::nullopt);
        if (!header.is_new && !header.is_deleted) return {};
        FileDiff file;
        (header.is_new ? file.new_path : file.old_path) = header.path;
        return add(std::move(file), static_cast<std::size_t>(header.line - 1));
    }

    Expected<void> add(FileDiff file, std::size_t index) {
        const std::string& path = file.new_path.empty() ? file.old_path : file.new_path;
        if (path.empty()) return wrong(ErrorKind::invalid_input, index, "neither side names a file");
        if (leaves_project(path)) {
            return wrong(ErrorKind::invalid_input, index,
                         "the path {} leaves the project; write it relative to its root", path);
        }
        if (path.ends_with('/')) return wrong(ErrorKind::invalid_input, index, "{} names a folder, not a file", path);
        for (const FileDiff& other : files_) {
            if ((other.new_path.empty() ? other.old_path : other.new_path) == path) {
                return wrong(ErrorKind::invalid_input, index, "a second section for {}; put all its hunks into one",
                             path);
            }
        }
        files_.push_back(std::move(file));
        return {};
    }

    Expected<void> read_file() {
        const std::size_t index = at_;
        git_.reset();
        FileDiff file;
        file.old_path = read_path(line(at_).substr(4));
        file.new_path = read_path(line(at_ + 1).substr(4));
        if (file.old_path == kDevNull) file.old_path.clear();
        if (file.new_path == kDevNull) file.new_path.clear();
        if (file.old_path.empty() && file.new_path.empty()) {
            return wrong(ErrorKind::invalid_input, index, "neither side names a file");
        }
        strip_prefixes(file.old_path, file.new_path);
        if (!file.old_path.empty() && !file.new_path.empty() && file.old_path != file.new_path) {
            return wrong(ErrorKind::unsupported, index,
                         "{} becomes {}; write a deletion and a new file instead of a rename", file.old_path,
                         file.new_path);
        }
        at_ += 2;
        while (at_ < lines_.size()) {
            const auto header = read_hunk_header(line(at_));
            if (!header) break;
            INFRARSI_ASSIGN(Hunk hunk, read_hunk(*header));
            if ((file.old_path.empty() && hunk.old_count > 0) || (file.new_path.empty() && hunk.new_count > 0)) {
                return wrong(ErrorKind::invalid_input, static_cast<std::size_t>(hunk.line - 1),
                             "a {} file cannot have lines on the other side",
                             file.old_path.empty() ? "new" : "deleted");
            }
            file.hunks.push_back(std::move(hunk));
        }
        if (line(at_).starts_with("@@")) {
            return wrong(ErrorKind::invalid_input, at_, "a hunk header must read `@@ -line,count +line,count @@`");
        }
        if (file.hunks.empty() && !file.old_path.empty() && !file.new_path.empty()) {
            return wrong(ErrorKind::invalid_input, index, "no hunk follows the header of {}", file.new_path);
        }
        return add(std::move(file), index);
    }

    bool starts_section(std::size_t index) const {
        const std::string_view text = line(index);
        if (text.starts_with("--- ") && line(index + 1).starts_with("+++ ")) return true;
        return text.starts_with("diff --git ") || read_hunk_header(text).has_value();
    }

    // Whether the line continues a hunk when nothing is counted.
    bool looks_like_hunk(std::size_t index) const {
        const std::string_view text = line(index);
        if (index >= lines_.size() || starts_section(index) || text == "-- ") return false;
        return text.empty() || text == "\r" || std::string_view(" +-\\").find(text.front()) != std::string_view::npos;
    }

    Expected<Hunk> read_hunk(const HunkHeader& header) {
        Hunk hunk{header.old_start, 0, header.new_start, 0, {}, false, false, number(at_)};
        const std::size_t header_index = at_++;
        const bool exact = counts_ == HunkCounts::exact;
        while (exact ? hunk.old_count < header.old_count || hunk.new_count < header.new_count : looks_like_hunk(at_)) {
            if (at_ >= lines_.size()) {
                return wrong(ErrorKind::invalid_input, header_index,
                             "the diff ends inside this hunk (it has {} of {} old and {} of {} new lines)",
                             hunk.old_count, header.old_count, hunk.new_count, header.new_count);
            }
            INFRARSI_TRY(add_line(hunk));
        }
        while (line(at_).starts_with('\\')) INFRARSI_TRY(add_line(hunk));
        if (!exact) drop_blank_tail(hunk);
        if (exact && (hunk.old_count != header.old_count || hunk.new_count != header.new_count)) {
            return wrong(ErrorKind::invalid_input, header_index,
                         "the hunk's counts do not fit: it says {} old and {} new lines", header.old_count,
                         header.new_count);
        }
        if (exact) INFRARSI_TRY(refuse_surplus(header_index));
        return hunk;
    }

    Expected<void> add_line(Hunk& hunk) {
        std::string_view text = line(at_);
        const bool blank = text.empty() || text == "\r";
        // Editors and mail strip the single space of an empty context line.
        const char mark = blank ? ' ' : text.front();
        if (mark == '\\') {
            if (hunk.lines.empty())
                return wrong(ErrorKind::invalid_input, at_, "`\\ No newline` with no line before it");
            const char last = hunk.lines.back().front();
            if (last != '+') hunk.old_no_newline = true;
            if (last != '-') hunk.new_no_newline = true;
            ++at_;
            return {};
        }
        if (mark != ' ' && mark != '+' && mark != '-') {
            return wrong(ErrorKind::invalid_input, at_,
                         "expected a line of the hunk, which begins with a space, + or -, but found \"{}\"",
                         text.substr(0, 60));
        }
        if ((mark != '+' && hunk.old_no_newline) || (mark != '-' && hunk.new_no_newline)) {
            return wrong(ErrorKind::invalid_input, at_,
                         "a line after the one that has no newline at the end of the file");
        }
        if (mark != '+') ++hunk.old_count;
        if (mark != '-') ++hunk.new_count;
        hunk.lines.push_back(blank ? ' ' + std::string(text) : std::string(text));
        ++at_;
        return {};
    }

    // Without counts, the blank lines between a hunk and what follows look like context.
    void drop_blank_tail(Hunk& hunk) const {
        while (!hunk.lines.empty() && hunk.lines.back() == " " && line(at_ - 1).empty()) {
            hunk.lines.pop_back();
            --hunk.old_count;
            --hunk.new_count;
            if (hunk.lines.empty() || !(hunk.lines.back() == " ")) break;
        }
    }

    // Changes right behind a finished hunk would be lost without a word.
    Expected<void> refuse_surplus(std::size_t header_index) const {
        for (std::size_t i = at_; i < lines_.size() && !line(i).empty() && looks_like_hunk(i); ++i) {
            if (line(i).front() == ' ' || line(i) == "\r") continue;
            return wrong(ErrorKind::invalid_input, i, "a changed line beyond the count in the hunk header on line {}",
                         number(header_index));
        }
        return {};
    }

    HunkCounts counts_;
    std::vector<std::string_view> lines_;
    std::size_t at_ = 0;
    std::optional<GitHeader> git_;
    std::vector<FileDiff> files_;
};

}  // namespace

Expected<std::vector<FileDiff>> parse_diff(std::string_view diff, HunkCounts counts) {
    return Parser(diff, counts).run();
}

}  // namespace infrarsi
