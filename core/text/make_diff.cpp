#include <unordered_map>

#include "core/text/diff.h"
#include "core/text/match_lines.h"

namespace infrarsi {

namespace {

// Lines with their newline, so that a last line without one differs from the same line with one.
std::vector<std::string_view> split_keeping_ends(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const auto newline = text.find('\n');
        const std::size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
        lines.push_back(text.substr(0, length));
        text.remove_prefix(length);
    }
    return lines;
}

void add_line(Hunk& hunk, char mark, std::string_view line) {
    const bool complete = line.ends_with('\n');
    if (complete) line.remove_suffix(1);
    hunk.lines.push_back(mark + std::string(line));
    if (mark != '+') ++hunk.old_count;
    if (mark != '-') ++hunk.new_count;
    if (!complete && mark != '+') hunk.old_no_newline = true;
    if (!complete && mark != '-') hunk.new_no_newline = true;
}

struct Change {
    std::size_t old_begin, old_end, new_begin, new_end;
};

std::vector<Change> changes_of(const std::vector<bool>& removed, const std::vector<bool>& added) {
    std::vector<Change> changes;
    std::size_t i = 0, j = 0;
    while (i < removed.size() || j < added.size()) {
        const Change start{i, i, j, j};
        while (i < removed.size() && removed[i]) ++i;
        while (j < added.size() && added[j]) ++j;
        if (i != start.old_begin || j != start.new_begin) {
            changes.push_back({start.old_begin, i, start.new_begin, j});
        } else {
            ++i, ++j;
        }
    }
    return changes;
}

std::vector<Hunk> hunks_of(const std::vector<std::string_view>& old_lines,
                           const std::vector<std::string_view>& new_lines, const std::vector<Change>& changes,
                           std::size_t context) {
    std::vector<Hunk> hunks;
    for (std::size_t first = 0; first < changes.size();) {
        std::size_t last = first;
        while (last + 1 < changes.size() && changes[last + 1].old_begin - changes[last].old_end <= 2 * context) ++last;
        const std::size_t lead = std::min(context, changes[first].old_begin);
        std::size_t at = changes[first].old_begin - lead;
        Hunk hunk;
        hunk.old_start = static_cast<int>(at) + 1;
        hunk.new_start = static_cast<int>(changes[first].new_begin - lead) + 1;
        for (std::size_t c = first; c <= last; ++c) {
            for (; at < changes[c].old_begin; ++at) add_line(hunk, ' ', old_lines[at]);
            for (; at < changes[c].old_end; ++at) add_line(hunk, '-', old_lines[at]);
            for (std::size_t j = changes[c].new_begin; j < changes[c].new_end; ++j) add_line(hunk, '+', new_lines[j]);
        }
        for (std::size_t i = 0; i < context && at < old_lines.size(); ++i, ++at) add_line(hunk, ' ', old_lines[at]);
        if (hunk.old_count == 0) --hunk.old_start;
        if (hunk.new_count == 0) --hunk.new_start;
        hunks.push_back(std::move(hunk));
        first = last + 1;
    }
    return hunks;
}

std::string quote_path(const std::string& path) {
    const bool plain = std::none_of(path.begin(), path.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\';
    });
    // A tab behind a path with spaces says where it ends, as git does.
    if (plain) return path.find(' ') == std::string::npos ? path : path + '\t';
    std::string quoted = "\"";
    for (const char c : path) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

std::string format_range(int start, int count) {
    return count == 1 ? std::to_string(start) : fmt::format("{},{}", start, count);
}

// A line of '-' before an unfinished last line needs its own marker, so the markers are placed while writing.
void format_hunk_lines(const Hunk& hunk, std::string& text) {
    std::size_t last_old = hunk.lines.size(), last_new = hunk.lines.size();
    for (std::size_t i = 0; i < hunk.lines.size(); ++i) {
        if (hunk.lines[i].front() != '+') last_old = i;
        if (hunk.lines[i].front() != '-') last_new = i;
    }
    for (std::size_t i = 0; i < hunk.lines.size(); ++i) {
        text += hunk.lines[i];
        text += '\n';
        if ((i == last_old && hunk.old_no_newline) || (i == last_new && hunk.new_no_newline)) {
            text += "\\ No newline at end of file\n";
        }
    }
}

}  // namespace

std::string format_diff(const std::vector<FileDiff>& files) {
    std::string text;
    for (const FileDiff& file : files) {
        if (file.hunks.empty()) {
            const std::string& path = file.new_path.empty() ? file.old_path : file.new_path;
            std::string old_side = quote_path("a/" + path), new_side = quote_path("b/" + path);
            if (old_side.ends_with('\t')) old_side.pop_back(), new_side.pop_back();
            text += fmt::format("diff --git {} {}\n{} file mode 100644\n", old_side, new_side,
                                file.new_path.empty() ? "deleted" : "new");
            continue;
        }
        text += "--- " + (file.old_path.empty() ? "/dev/null" : quote_path("a/" + file.old_path)) + '\n';
        text += "+++ " + (file.new_path.empty() ? "/dev/null" : quote_path("b/" + file.new_path)) + '\n';
        for (const Hunk& hunk : file.hunks) {
            text += fmt::format("@@ -{} +{} @@\n", format_range(hunk.old_start, hunk.old_count),
                                format_range(hunk.new_start, hunk.new_count));
            format_hunk_lines(hunk, text);
        }
    }
    return text;
}

std::string make_diff(const std::string& path, const std::string* old_text, const std::string* new_text, int context) {
    const bool same_presence = (old_text == nullptr) == (new_text == nullptr);
    if (same_presence && (old_text == nullptr || *old_text == *new_text)) return "";
    const auto old_lines = split_keeping_ends(old_text ? *old_text : std::string_view());
    const auto new_lines = split_keeping_ends(new_text ? *new_text : std::string_view());
    std::unordered_map<std::string_view, int> numbers;
    const auto number_lines = [&](const std::vector<std::string_view>& lines) {
        std::vector<int> tokens;
        tokens.reserve(lines.size());
        for (const auto line : lines)
            tokens.push_back(numbers.try_emplace(line, static_cast<int>(numbers.size())).first->second);
        return tokens;
    };
    const std::vector<int> old_tokens = number_lines(old_lines), new_tokens = number_lines(new_lines);
    const LineMatch match = match_lines(old_tokens, new_tokens);
    FileDiff file;
    if (old_text) file.old_path = path;
    if (new_text) file.new_path = path;
    file.hunks = hunks_of(old_lines, new_lines, changes_of(match.removed, match.added),
                          static_cast<std::size_t>(std::max(context, 0)));
    return format_diff({file});
}

namespace {

// Within a run of changes, removals first.
void order_changes(std::vector<std::string>& lines) {
    for (auto at = lines.begin(); at != lines.end();) {
        const auto begin = std::find_if(at, lines.end(), [](const auto& line) { return line.front() != ' '; });
        const auto end = std::find_if(begin, lines.end(), [](const auto& line) { return line.front() == ' '; });
        std::vector<std::string> ordered;
        std::copy_if(begin, end, std::back_inserter(ordered), [](const auto& line) { return line.front() == '-'; });
        std::copy_if(begin, end, std::back_inserter(ordered), [](const auto& line) { return line.front() == '+'; });
        std::move(ordered.begin(), ordered.end(), begin);
        at = end;
    }
}

}  // namespace

FileDiff reverse(const FileDiff& diff) {
    FileDiff result = diff;
    std::swap(result.old_path, result.new_path);
    for (Hunk& hunk : result.hunks) {
        std::swap(hunk.old_start, hunk.new_start);
        std::swap(hunk.old_count, hunk.new_count);
        std::swap(hunk.old_no_newline, hunk.new_no_newline);
        for (auto& line : hunk.lines) {
            if (line.front() != ' ') line.front() = line.front() == '-' ? '+' : '-';
        }
        order_changes(hunk.lines);
    }
    return result;
}

Expected<std::string> normalise_diff(std::string_view diff) {
    INFRARSI_ASSIGN(std::vector<FileDiff> files, parse_diff(diff));
    std::sort(files.begin(), files.end(), [](const FileDiff& a, const FileDiff& b) {
        return std::tie(a.new_path, a.old_path) < std::tie(b.new_path, b.old_path);
    });
    std::string text;
    for (FileDiff& file : files) {
        text += fmt::format("--- {}\n+++ {}\n", file.old_path, file.new_path);
        for (Hunk& hunk : file.hunks) {
            order_changes(hunk.lines);
            text += "@@\n";
            format_hunk_lines(hunk, text);
        }
    }
    return text;
}

}  // namespace infrarsi
