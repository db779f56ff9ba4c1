#include "core/text/diff.h"

namespace infrarsi {

namespace {

struct Lines {
    std::vector<std::string_view> content;  // without \n; a CR stays
    bool ends_in_newline = true;
};

Lines split_lines(std::string_view text) {
    Lines lines;
    lines.ends_in_newline = text.empty() || text.ends_with('\n');
    while (!text.empty()) {
        const auto newline = text.find('\n');
        lines.content.push_back(text.substr(0, newline));
        text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    }
    return lines;
}

enum class LineEnds { keep, add_return, drop_return };

// A diff whose lines end otherwise than all of the file's follows the file.
LineEnds line_ends_for(const Lines& file, const FileDiff& diff) {
    const auto has_return = [](std::string_view line) { return line.ends_with('\r'); };
    std::size_t file_returns = 0, complete = file.content.size() - (file.ends_in_newline ? 0 : 1), diff_returns = 0,
                diff_lines = 0;
    if (file.content.empty()) return LineEnds::keep;
    for (std::size_t i = 0; i < complete; ++i) file_returns += has_return(file.content[i]);
    for (const Hunk& hunk : diff.hunks) {
        diff_lines += hunk.lines.size();
        for (const auto& line : hunk.lines) diff_returns += has_return(line);
    }
    if (complete > 0 && file_returns == complete && diff_returns == 0) return LineEnds::add_return;
    if (file_returns == 0 && diff_lines > 0 && diff_returns == diff_lines) return LineEnds::drop_return;
    return LineEnds::keep;
}

struct Sides {
    std::vector<std::string> old_lines, new_lines;
};

Sides sides_of(const Hunk& hunk, LineEnds ends) {
    Sides sides;
    for (const auto& line : hunk.lines) {
        std::string content = line.substr(1);
        if (ends == LineEnds::add_return) content += '\r';
        if (ends == LineEnds::drop_return && content.ends_with('\r')) content.pop_back();
        if (line.front() != '+') sides.old_lines.push_back(content);
        if (line.front() != '-') sides.new_lines.push_back(std::move(content));
    }
    return sides;
}

class Applier {
public:
    Applier(std::string_view text, const FileDiff& diff)
        : file_(split_lines(text)), diff_(diff), ends_(line_ends_for(file_, diff)) {
        path_ = diff.new_path.empty() ? diff.old_path : diff.new_path;
    }

    Expected<std::string> run() {
        for (std::size_t i = 0; i < diff_.hunks.size(); ++i) INFRARSI_TRY(apply(i));
        copy_until(file_.content.size());
        if (!last_is_new_) newline_at_end_ = file_.ends_in_newline;
        std::string text;
        for (std::size_t i = 0; i < out_.size(); ++i) {
            text += out_[i];
            if (i + 1 < out_.size() || newline_at_end_) text += '\n';
        }
        return text;
    }

private:
    void copy_until(std::size_t end) {
        if (done_ < end) last_is_new_ = false;
        for (; done_ < end; ++done_) out_.emplace_back(file_.content[done_]);
    }

    bool same_line(std::size_t at, const std::string& expected) const {
        if (file_.content[at] == expected) return true;
        // The last line of a CRLF file has no CR when it has no newline.
        const bool unfinished = at + 1 == file_.content.size() && !file_.ends_in_newline;
        return unfinished && ends_ == LineEnds::add_return && std::string(file_.content[at]) + '\r' == expected;
    }

    bool matches(const Hunk& hunk, const std::vector<std::string>& expected, std::size_t at) const {
        if (at < done_ || at + expected.size() > file_.content.size()) return false;
        if (hunk.old_no_newline && (at + expected.size() != file_.content.size() || file_.ends_in_newline))
            return false;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (!same_line(at + i, expected[i])) return false;
        }
        return true;
    }

    std::optional<std::size_t> find(const Hunk& hunk, const std::vector<std::string>& expected, long wanted) const {
        const long last = static_cast<long>(file_.content.size());
        const auto fits = [&](long at) {
            return at >= 0 && at <= last && matches(hunk, expected, static_cast<std::size_t>(at));
        };
        if (fits(wanted)) return static_cast<std::size_t>(wanted);
        if (expected.empty()) return std::nullopt;  // nothing to recognise another place by
        wanted = std::clamp(wanted, 0L, last);
        if (fits(wanted)) return static_cast<std::size_t>(wanted);
        for (long distance = 1; wanted - distance >= 0 || wanted + distance <= last; ++distance) {
            if (fits(wanted - distance)) return static_cast<std::size_t>(wanted - distance);
            if (fits(wanted + distance)) return static_cast<std::size_t>(wanted + distance);
        }
        return std::nullopt;
    }

    Expected<void> apply(std::size_t index) {
        const Hunk& hunk = diff_.hunks[index];
        const Sides sides = sides_of(hunk, ends_);
        // A hunk without old lines stands behind the line that it names.
        const long wanted = hunk.old_start - (sides.old_lines.empty() ? 0 : 1) + moved_;
        const auto at = find(hunk, sides.old_lines, wanted);
        if (!at) return conflict(index, sides.old_lines, wanted);
        moved_ += static_cast<long>(*at) - wanted;
        copy_until(*at);
        out_.insert(out_.end(), sides.new_lines.begin(), sides.new_lines.end());
        done_ = *at + sides.old_lines.size();
        if (done_ == file_.content.size()) end_file(hunk, sides);
        return {};
    }

    // The hunk reached the end of the file: who says whether there is a newline?
    void end_file(const Hunk& hunk, const Sides& sides) {
        last_is_new_ = true;
        newline_at_end_ = !hunk.new_no_newline;
        const bool silent = !hunk.old_no_newline && !hunk.new_no_newline;
        const bool ends_in_context = !hunk.lines.empty() && hunk.lines.back().front() == ' ';
        if (silent && ends_in_context && !sides.old_lines.empty()) newline_at_end_ = file_.ends_in_newline;
        if (newline_at_end_ || out_.empty()) return;
        if (ends_ == LineEnds::add_return && out_.back().ends_with('\r')) out_.back().pop_back();
    }

    Unexpected conflict(std::size_t index, const std::vector<std::string>& expected, long wanted) const {
        const Hunk& hunk = diff_.hunks[index];
        const std::string which = fmt::format("hunk {} of {} (line {} of the diff) does not fit {}", index + 1,
                                              diff_.hunks.size(), hunk.line, path_);
        const long count = static_cast<long>(file_.content.size());
        if (expected.empty()) {
            return fail_at(ErrorKind::conflict, {path_, static_cast<int>(count), 0},
                           "{}: it adds lines after line {}, but the file has {}", which, wanted, count);
        }
        const auto shown = [](std::string_view text) {
            if (text.ends_with('\r')) text.remove_suffix(1);
            return text.size() <= 80 ? std::string(text) : std::string(text.substr(0, 77)) + "…";
        };
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const long at = wanted + static_cast<long>(i);
            const bool inside = at >= 0 && at < count;
            if (inside && same_line(static_cast<std::size_t>(at), expected[i])) continue;
            const std::string found = inside
                                          ? fmt::format("is `{}`", shown(file_.content[static_cast<std::size_t>(at)]))
                                          : fmt::format("is beyond the file's {} lines", count);
            return fail_at(
                ErrorKind::conflict, {path_, static_cast<int>(std::max(at, 0L)) + 1, 0},
                "{}: looked for at line {} and in the rest of the file; line {} {} where the hunk expects `{}`", which,
                wanted + 1, at + 1, found, shown(expected[i]));
        }
        return fail_at(ErrorKind::conflict, {path_, static_cast<int>(std::max(wanted, 0L)) + 1, 0},
                       "{}: its lines are there, but {}", which,
                       hunk.old_no_newline
                           ? "the file goes on, or ends in a newline, where the hunk says that it does not"
                           : "an earlier hunk changed them already");
    }

    Lines file_;
    const FileDiff& diff_;
    LineEnds ends_;
    std::string path_;
    std::vector<std::string> out_;
    std::size_t done_ = 0;  // lines of the file that are dealt with
    long moved_ = 0;        // how far the last hunk was from its line
    bool last_is_new_ = false;
    bool newline_at_end_ = true;
};

}  // namespace

Expected<std::string> apply_hunks(std::string_view old_text, const FileDiff& diff) {
    if (diff.old_path.empty() && !old_text.empty()) {
        return fail_at(ErrorKind::conflict, {diff.new_path}, "the diff makes {} anew, but the file is there already",
                       diff.new_path);
    }
    INFRARSI_ASSIGN(std::string text, Applier(old_text, diff).run());
    if (diff.new_path.empty() && !text.empty()) {
        return fail_at(ErrorKind::conflict, {diff.old_path},
                       "the diff deletes {}, but the file has lines that the diff does not know", diff.old_path);
    }
    return text;
}

}  // namespace infrarsi
