#include "core/text/match_lines.h"

#include <algorithm>
#include <utility>

namespace infrarsi {

namespace {

// The most edits that Myers searches for in one gap; its trace takes kMostEdits² integers (4 MB).
constexpr int kMostEdits = 1000;

struct Range {
    int old_begin, old_end, new_begin, new_end;
};

using Tokens = std::vector<int>;

// Marks which old lines go and which new lines come.
class LineMatcher {
public:
    LineMatcher(const Tokens& old_tokens, const Tokens& new_tokens, int token_count)
        : old_(old_tokens),
          new_(new_tokens),
          removed_(old_tokens.size(), true),
          added_(new_tokens.size(), true),
          old_seen_(static_cast<std::size_t>(token_count), {0, 0}),
          new_seen_(static_cast<std::size_t>(token_count), {0, 0}) {}

    void run() {
        std::vector<Range> todo{{0, static_cast<int>(old_.size()), 0, static_cast<int>(new_.size())}};
        while (!todo.empty()) {
            Range range = todo.back();
            todo.pop_back();
            trim(range);
            if (range.old_begin == range.old_end || range.new_begin == range.new_end) continue;
            if (!split_at_unique_lines(range, todo)) match_by_myers(range);
        }
    }

    LineMatch take() { return {std::move(removed_), std::move(added_)}; }

private:
    struct Seen {
        int count = 0, at = 0;
    };

    void pair(int old_line, int new_line) {
        removed_[static_cast<std::size_t>(old_line)] = false;
        added_[static_cast<std::size_t>(new_line)] = false;
    }
    int old_at(int i) const { return old_[static_cast<std::size_t>(i)]; }
    int new_at(int i) const { return new_[static_cast<std::size_t>(i)]; }

    void trim(Range& range) {
        while (range.old_begin < range.old_end && range.new_begin < range.new_end &&
               old_at(range.old_begin) == new_at(range.new_begin)) {
            pair(range.old_begin++, range.new_begin++);
        }
        while (range.old_begin < range.old_end && range.new_begin < range.new_end &&
               old_at(range.old_end - 1) == new_at(range.new_end - 1)) {
            pair(--range.old_end, --range.new_end);
        }
    }

    // Patience: the longest increasing run of lines that occur exactly once on both sides are fixed points.
    bool split_at_unique_lines(const Range& range, std::vector<Range>& todo) {
        for (int i = range.old_begin; i < range.old_end; ++i) note(old_seen_, old_at(i), i);
        for (int i = range.new_begin; i < range.new_end; ++i) note(new_seen_, new_at(i), i);
        std::vector<std::pair<int, int>> unique;  // (old, new), by old
        for (int i = range.old_begin; i < range.old_end; ++i) {
            const auto token = static_cast<std::size_t>(old_at(i));
            if (old_seen_[token].count == 1 && new_seen_[token].count == 1) unique.emplace_back(i, new_seen_[token].at);
        }
        for (int i = range.old_begin; i < range.old_end; ++i) old_seen_[static_cast<std::size_t>(old_at(i))].count = 0;
        for (int i = range.new_begin; i < range.new_end; ++i) new_seen_[static_cast<std::size_t>(new_at(i))].count = 0;
        if (unique.empty()) return false;
        Range rest = range;
        for (const auto& [old_line, new_line] : longest_increasing(unique)) {
            todo.push_back({rest.old_begin, old_line, rest.new_begin, new_line});
            pair(old_line, new_line);
            rest.old_begin = old_line + 1;
            rest.new_begin = new_line + 1;
        }
        todo.push_back(rest);
        return true;
    }

    static void note(std::vector<Seen>& seen, int token, int at) {
        Seen& entry = seen[static_cast<std::size_t>(token)];
        ++entry.count;
        entry.at = at;
    }

    static std::vector<std::pair<int, int>> longest_increasing(const std::vector<std::pair<int, int>>& pairs) {
        std::vector<std::size_t> tails;
        std::vector<std::ptrdiff_t> before(pairs.size(), -1);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const auto place =
                std::lower_bound(tails.begin(), tails.end(), pairs[i].second,
                                 [&](std::size_t tail, int value) { return pairs[tail].second < value; });
            if (place != tails.begin()) before[i] = static_cast<std::ptrdiff_t>(*(place - 1));
            if (place == tails.end()) {
                tails.push_back(i);
            } else {
                *place = i;
            }
        }
        std::vector<std::pair<int, int>> run;
        for (auto i = static_cast<std::ptrdiff_t>(tails.back()); i >= 0; i = before[static_cast<std::size_t>(i)]) {
            run.push_back(pairs[static_cast<std::size_t>(i)]);
        }
        std::reverse(run.begin(), run.end());
        return run;
    }

    // Myers 1986, greedy with a stored trace, on the lines that occur on both sides of the gap (the others change in
    // any case). Past kMostEdits the gap is left as replaced.
    void match_by_myers(const Range& range) {
        std::vector<int> old_lines, new_lines;
        for (int i = range.old_begin; i < range.old_end; ++i) note(old_seen_, old_at(i), i);
        for (int i = range.new_begin; i < range.new_end; ++i) note(new_seen_, new_at(i), i);
        for (int i = range.old_begin; i < range.old_end; ++i) {
            if (new_seen_[static_cast<std::size_t>(old_at(i))].count > 0) old_lines.push_back(i);
        }
        for (int i = range.new_begin; i < range.new_end; ++i) {
            if (old_seen_[static_cast<std::size_t>(new_at(i))].count > 0) new_lines.push_back(i);
        }
        for (int i = range.old_begin; i < range.old_end; ++i) old_seen_[static_cast<std::size_t>(old_at(i))].count = 0;
        for (int i = range.new_begin; i < range.new_end; ++i) new_seen_[static_cast<std::size_t>(new_at(i))].count = 0;
        search(old_lines, new_lines);
    }

    void search(const std::vector<int>& a, const std::vector<int>& b) {
        const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
        const int most = std::min(n + m, kMostEdits);
        const auto equal = [&](int x, int y) {
            return old_at(a[static_cast<std::size_t>(x)]) == new_at(b[static_cast<std::size_t>(y)]);
        };
        std::vector<int> reach(2 * static_cast<std::size_t>(most) + 3, 0);  // furthest x on diagonal k, at k + most + 1
        const auto at = [&](int k) -> int& { return reach[static_cast<std::size_t>(k + most + 1)]; };
        std::vector<std::vector<int>> trace;  // trace[d][k + d]: reach before step d
        for (int d = 0; d <= most; ++d) {
            trace.emplace_back(reach.begin() + (most - d), reach.begin() + (most + d + 3));
            for (int k = -d; k <= d; k += 2) {
                int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
                while (x < n && x - k < m && x - k >= 0 && equal(x, x - k)) ++x;
                at(k) = x;
                if (x >= n && x - k >= m) return walk_back(a, b, trace, d);
            }
        }
    }

    void walk_back(const std::vector<int>& a, const std::vector<int>& b, const std::vector<std::vector<int>>& trace,
                   int d) {
        int x = static_cast<int>(a.size()), y = static_cast<int>(b.size());
        for (; d >= 0; --d) {
            const auto before = [&](int k) {
                return trace[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d + 1)];
            };
            const int k = x - y;
            const bool down = k == -d || (k != d && before(k - 1) < before(k + 1));
            const int from_x = d == 0 ? 0 : (down ? before(k + 1) : before(k - 1));
            const int from_y = d == 0 ? 0 : from_x - (down ? k + 1 : k - 1);
            while (x > from_x && y > from_y) {
                --x, --y;
                pair(a[static_cast<std::size_t>(x)], b[static_cast<std::size_t>(y)]);
            }
            x = from_x;
            y = from_y;
        }
    }

    const Tokens& old_;
    const Tokens& new_;
    std::vector<bool> removed_, added_;
    std::vector<Seen> old_seen_, new_seen_;
};

}  // namespace

LineMatch match_lines(const std::vector<int>& old_lines, const std::vector<int>& new_lines) {
    int count = 0;
    for (const auto* lines : {&old_lines, &new_lines}) {
        for (const int line : *lines) count = std::max(count, line + 1);
    }
    LineMatcher matcher(old_lines, new_lines, count);
    matcher.run();
    return matcher.take();
}

}  // namespace infrarsi
