#include "core/text/diff.h"

#include "core/base/env.h"
#include "core/testing/temp_dir.h"

using namespace infrarsi;

namespace {

// The one file's hunks applied, or the error in braces.
std::string applied(const std::string& text, const std::string& diff, HunkCounts counts = HunkCounts::exact) {
    const auto files = parse_diff(diff, counts);
    if (!files) return "{" + files.error().describe() + "}";
    if (files->size() != 1) return fmt::format("{{{} files}}", files->size());
    const auto result = apply_hunks(text, files->front());
    return result ? *result : "{" + result.error().describe() + "}";
}

std::string numbered(int from, int to) {
    std::string text;
    for (int i = from; i <= to; ++i) text += fmt::format("line {}\n", i);
    return text;
}

const std::string kHunk = "@@ -2,3 +2,3 @@\n line 2\n-line 3\n+three\n line 4\n";
const std::string kHeader = "--- a/f.py\n+++ b/f.py\n";
const std::string kAfter = "line 1\nline 2\nthree\nline 4\nline 5\n";

}  // namespace

TEST_CASE("diffs are read as people, tools and models write them", "[text]") {
    const std::string base = numbered(1, 5);
    const auto crlf = [](std::string text) {
        for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += 2) text.replace(i, 1, "\r\n");
        return text;
    };
    const std::vector<std::pair<std::string, std::string>> cases{
        {"plain", kHeader + kHunk},
        {"git header", "diff --git a/f.py b/f.py\nindex 1234567..89abcde 100644\n" + kHeader + kHunk},
        {"text before and after",
         "Here is the change:\n\n```diff\n" + kHeader + kHunk + "```\n\nIt makes things - and only things - faster.\n"},
        {"mail", "From: someone\nSubject: [PATCH] x\n---\n f.py | 2 +-\n\n" + kHeader + kHunk + "-- \n2.39.0\n"},
        {"times", "--- a/f.py\t2026-01-01 00:00:00\n+++ b/f.py\t2026-01-01 00:00:01\n" + kHunk},
        {"no prefixes", "--- f.py\n+++ f.py\n" + kHunk},
        {"mnemonic prefixes", "--- i/f.py\n+++ w/f.py\n" + kHunk},
        {"quoted", "--- \"a/f.py\"\n+++ \"b/f.py\"\n" + kHunk},
        {"CRLF all over", crlf(kHeader + kHunk)},
        {"hunk title", kHeader + "@@ -2,3 +2,3 @@ def step(self):\n line 2\n-line 3\n+three\n line 4\n"},
        {"no final newline in the diff", kHeader + kHunk.substr(0, kHunk.size() - 1)},
        {"absurd line", kHeader + "@@ -2000000000,3 +2000000000,3 @@\n line 2\n-line 3\n+three\n line 4\n"},
        {"wrong line", kHeader + "@@ -40,3 +40,3 @@\n line 2\n-line 3\n+three\n line 4\n"},
    };
    for (const auto& [name, diff] : cases) {
        CAPTURE(name);
        CHECK(applied(base, diff) == kAfter);
        const auto files = parse_diff(diff);
        REQUIRE(files);
        CHECK(files->front().old_path == "f.py");
        CHECK(files->front().new_path == "f.py");
    }
}

TEST_CASE("a diff that cannot be meant is refused at its line", "[text]") {
    struct Case {
        std::string name, diff;
        ErrorKind kind;
        int line;
        std::string says;
    };
    const std::string git = "diff --git a/f.py b/f.py\n";
    const std::vector<Case> cases{
        {"prose", "just words\n", ErrorKind::invalid_input, 0, "no file section"},
        {"hunk first", kHunk, ErrorKind::invalid_input, 1, "before any"},
        {"no hunk", kHeader, ErrorKind::invalid_input, 1, "no hunk"},
        {"short", kHeader + "@@ -2,4 +2,4 @@\n line 2\n-line 3\n+three\n line 4\n", ErrorKind::invalid_input, 3,
         "ends inside"},
        {"surplus", kHeader + "@@ -2,2 +2,2 @@\n line 2\n-line 3\n+three\n line 4\n+lost\n", ErrorKind::invalid_input,
         8, "beyond the count"},
        {"not a line", kHeader + "@@ -2,3 +2,3 @@\n line 2\nline 3\n", ErrorKind::invalid_input, 5,
         "begins with a space"},
        {"counts", kHeader + "@@ -2,1 +2,2 @@\n-line 2\n-line 3\n+a\n+b\n", ErrorKind::invalid_input, 3,
         "counts do not fit"},
        {"bad header", kHeader + "@@ around line 3 @@\n-line 3\n", ErrorKind::invalid_input, 3, "must read"},
        {"absolute", "--- /etc/passwd\n+++ /etc/passwd\n" + kHunk, ErrorKind::invalid_input, 1, "leaves the project"},
        {"climbs", "--- a/../x\n+++ b/../x\n" + kHunk, ErrorKind::invalid_input, 1, "leaves the project"},
        {"climbs quoted", "--- \"a/x/\\056./../y\"\n+++ \"b/x/\\056./../y\"\n" + kHunk, ErrorKind::invalid_input, 1,
         "leaves"},
        {"a folder", "--- /dev/null\n+++ b/new/\n@@ -0,0 +1 @@\n+x\n", ErrorKind::invalid_input, 1, "names a folder"},
        {"drive", "--- C:\\x\n+++ C:\\x\n" + kHunk, ErrorKind::invalid_input, 1, "leaves the project"},
        {"twice", kHeader + kHunk + kHeader + kHunk, ErrorKind::invalid_input, 8, "second section"},
        {"rename", "--- a/f.py\n+++ b/g.py\n" + kHunk, ErrorKind::unsupported, 1, "rename"},
        {"git rename", "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n", ErrorKind::unsupported,
         2, "renames"},
        {"mode", git + "old mode 100644\nnew mode 100755\n", ErrorKind::unsupported, 2, "mode"},
        {"binary", git + "GIT binary patch\nliteral 0\n", ErrorKind::unsupported, 2, "binary"},
        {"plain binary", "Binary files a/x and b/x differ\n", ErrorKind::unsupported, 1, "binary"},
        {"link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
         ErrorKind::unsupported, 2, "symbolic"},
        {"executable", git + "new file mode 100755\n--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+x\n",
         ErrorKind::unsupported, 2, "100755"},
        {"nothing", "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", ErrorKind::invalid_input, 1, "neither side"},
        {"new with old lines", "--- /dev/null\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+b\n", ErrorKind::invalid_input, 3,
         "new file"},
        {"goes on after the end", kHeader + "@@ -1,2 +1,1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n",
         ErrorKind::invalid_input, 6, "no newline"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.name);
        const auto result = parse_diff(c.diff);
        REQUIRE_FALSE(result);
        CHECK(result.error().kind() == c.kind);
        CHECK((result.error().place() ? result.error().place()->line : 0) == c.line);
        CHECK_THAT(result.error().message(), Catch::Contains(c.says));
    }
    const auto blank = parse_diff(" \n\n");
    REQUIRE(blank);
    CHECK(blank->empty());
}

TEST_CASE("counts may be made anew for those who cannot count", "[text]") {
    const std::string wrong = kHeader + "@@ -2,9 +2,1 @@\n line 2\n-line 3\n+three\n line 4\n\n```\nand so on\n";
    CHECK_THAT(applied(numbered(1, 5), wrong), Catch::StartsWith("{"));
    CHECK(applied(numbered(1, 5), wrong, HunkCounts::recount) == kAfter);
    const std::string two =
        kHeader + "@@ -1,1 +1,1 @@\n-line 1\n+one\n line 2\n@@ -9,9 +9,9 @@\n line 4\n-line 5\n+five\n";
    CHECK(applied(numbered(1, 5), two, HunkCounts::recount) == "one\nline 2\nline 3\nline 4\nfive\n");
}

TEST_CASE("a moved hunk goes to the nearest place, before at a tie", "[text]") {
    const std::string hunk = kHeader + "@@ -5,2 +5,2 @@\n key\n-old\n+new\n";
    const auto at = [](std::initializer_list<int> places) {
        std::string text;
        for (int line = 1; line <= 14; ++line) {
            const bool here = std::count(places.begin(), places.end(), line) > 0;
            const bool after = std::count(places.begin(), places.end(), line - 1) > 0;
            text += here ? "key\n" : after ? "old\n" : "-\n";
        }
        return text;
    };
    const auto moved_to = [&](std::initializer_list<int> places) {
        const std::string text = applied(at(places), hunk);
        return std::count(text.begin(), text.begin() + static_cast<long>(text.find("new")), '\n');
    };
    CHECK(moved_to({5, 7}) == 5);
    CHECK(moved_to({2, 9}) == 2);
    CHECK(moved_to({1, 8}) == 8);
    CHECK(moved_to({3, 7}) == 3);
    CHECK(moved_to({13}) == 13);
}

TEST_CASE("later hunks move with the earlier ones", "[text]") {
    // Both places of the second hunk are equally near to its own line; the first hunk was found 4 lines down.
    const std::string diff = kHeader + "@@ -1,2 +1,2 @@\n top\n-a\n+A\n@@ -6,2 +6,2 @@\n pair\n-b\n+B\n";
    CHECK(applied("x\nx\nx\nx\ntop\na\npair\nb\nx\npair\nb\n", diff) == "x\nx\nx\nx\ntop\nA\npair\nb\nx\npair\nB\n");
}

TEST_CASE("a conflict says where it was looked for and what is there", "[text]") {
    const auto files = parse_diff("text\n" + kHeader + kHunk);
    REQUIRE(files);
    const auto result = apply_hunks("line 1\nline 2\nline drei\nline 4\n", files->front());
    REQUIRE_FALSE(result);
    CHECK(result.error().kind() == ErrorKind::conflict);
    CHECK(result.error().place() == Place{"f.py", 3, 0});
    CHECK(result.error().message() ==
          "hunk 1 of 1 (line 4 of the diff) does not fit f.py: looked for at line 2 and in the rest of the file; line "
          "3 is "
          "`line drei` where the hunk expects `line 3`");
    CHECK_THAT(applied("one\n", kHeader + kHunk), Catch::Contains("beyond the file's 1 lines"));
    const std::string overlapping =
        kHeader + "@@ -2,2 +2,2 @@\n line 2\n-line 3\n+x\n@@ -3,2 +3,2 @@\n-line 3\n+y\n line 4\n";
    CHECK_THAT(applied(numbered(1, 5), overlapping), Catch::Contains("an earlier hunk changed them already"));
}

TEST_CASE("files come, go and end as the diff says", "[text]") {
    CHECK(applied("", "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+a\n+b\n") == "a\nb\n");
    CHECK(applied("", "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n") == "a");
    CHECK(applied("a\n", "--- a/n.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n") == "");
    CHECK_THAT(applied("x\n", "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+a\n"), Catch::Contains("is there already"));
    CHECK_THAT(applied("a\nb\n", "--- a/n.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"), Catch::Contains("does not know"));
    CHECK(applied("", "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n") == "");

    const std::string end = kHeader + "@@ -1,2 +1,2 @@\n a\n-b\n";
    CHECK(applied("a\nb", end + "+c\n\\ No newline at end of file\n") == "a\nc");
    CHECK(applied("a\nb", end + "\\ No newline at end of file\n+c\n") == "a\nc\n");
    CHECK_THAT(applied("a\nb\n", end + "\\ No newline at end of file\n+c\n"), Catch::Contains("ends in a newline"));
    CHECK(applied("a\nb", kHeader + "@@ -1,2 +1,2 @@\n-a\n+c\n b\n") == "c\nb");  // silent: as it was
    CHECK(applied("a\r\nb\r\n", kHeader + "@@ -1,2 +1,2 @@\n-a\n+c\n b\n") == "c\r\nb\r\n");
    CHECK(applied("a\r\nb", kHeader + "@@ -1,2 +1,2 @@\n-a\n+c\n b\n") == "c\r\nb");
}

TEST_CASE("a made diff has the form that git writes", "[text]") {
    const std::string before = numbered(1, 12), none;
    std::string after = before;
    after.replace(after.find("line 6\n"), 7, "six\nand more\n");
    CHECK(make_diff("f.py", &before, &after) ==
          "--- a/f.py\n+++ b/f.py\n@@ -3,7 +3,8 @@\n line 3\n line 4\n line 5\n-line 6\n+six\n+and more\n line 7\n "
          "line 8\n "
          "line 9\n");
    CHECK(make_diff("f.py", &before, &before).empty());
    const std::string one = "a\n";
    CHECK(make_diff("a b", nullptr, &one) == "--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+a\n");
    CHECK(make_diff("q\"x", &one, nullptr) == "--- \"a/q\\\"x\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
    CHECK(make_diff("e", nullptr, &none) == "diff --git a/e b/e\nnew file mode 100644\n");
    CHECK(make_diff("e", &none, &one) == "--- a/e\n+++ b/e\n@@ -0,0 +1 @@\n+a\n");
}

namespace {

struct Edit {
    std::string before, after;
};

Edit random_edit(Random& random) {
    std::vector<std::string> lines;
    const std::size_t count = random.below(60);
    const std::size_t words = 1 + random.below(40);  // few words: many equal lines
    const auto word = [&] { return fmt::format("w{}", random.below(words)); };
    for (std::size_t i = 0; i < count; ++i) lines.push_back(word());
    std::vector<std::string> changed = lines;
    for (std::size_t edits = 1 + random.below(6); edits > 0; --edits) {
        const std::size_t at = random.below(changed.size() + 1);
        if (random.below(2) == 0 && at < changed.size()) changed.erase(changed.begin() + static_cast<long>(at));
        if (random.below(3) > 0)
            changed.insert(changed.begin() + static_cast<long>(std::min(at, changed.size())), word() + "x");
    }
    const std::string end = random.below(5) == 0 ? "\r\n" : "\n";
    const auto join = [&](const std::vector<std::string>& from) {
        std::string text;
        for (const auto& line : from) text += line + end;
        if (!text.empty() && random.below(4) == 0) text.resize(text.size() - end.size());
        return text;
    };
    return {join(lines), join(changed)};
}

// Exit status of a shell command; its output goes to `out`.
int shell(const std::string& command, std::string& out) {
    std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    out.clear();
    char buffer[4096];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, count);
    return ::pclose(pipe);
}

}  // namespace

TEST_CASE("diffs agree with git apply and git diff", "[text]") {
    TempDir folder;
    Random random(20261129);
    int compared = 0;
    for (int round = 0; round < 200; ++round) {
        const Edit edit = random_edit(random);
        if (edit.before == edit.after) continue;
        const int context = static_cast<int>(random.below(5));
        const std::string diff = make_diff("f name.txt", &edit.before, &edit.after, context);
        CAPTURE(round, context, diff, edit.before);

        const auto files = parse_diff(diff);
        REQUIRE(files);
        CHECK(format_diff(*files) == diff);
        const auto ours = apply_hunks(edit.before, files->front());
        REQUIRE(ours);
        REQUIRE(*ours == edit.after);
        const auto undone = apply_hunks(edit.after, reverse(files->front()));
        REQUIRE(undone);
        REQUIRE(*undone == edit.before);

        folder.write("f name.txt", edit.before);
        folder.write("after", edit.after);
        folder.write("p.diff", diff);
        std::string out;
        const std::string go = "cd '" + folder.path().string() + "' && ";
        // git has its own ideas of an empty file that gains lines without a git header; both sides exist here.
        shell(go + "git diff --no-index --no-color -U" + std::to_string(context) + " -- 'f name.txt' after", out);
        auto theirs = out;
        for (std::size_t at = 0; (at = theirs.find("b/after", at)) != std::string::npos;)
            theirs.replace(at, 7, "b/f name.txt");
        const auto git_files = parse_diff(theirs);
        REQUIRE(git_files);
        const auto by_their_diff = apply_hunks(edit.before, git_files->front());
        REQUIRE(by_their_diff);
        REQUIRE(*by_their_diff == edit.after);
        const int status = shell(go + "git apply --unidiff-zero --whitespace=nowarn p.diff", out);
        CAPTURE(out);
        REQUIRE(status == 0);
        REQUIRE(folder.read("f name.txt") == edit.after);
        ++compared;
    }
    CHECK(compared > 150);
}

TEST_CASE("a hunk on a moved base goes where git puts it", "[text]") {
    TempDir folder;
    Random random(3);
    for (int round = 0; round < 40; ++round) {
        std::string before;
        for (std::size_t i = 0; i < 40; ++i) before += fmt::format("line {}\n", i);
        std::string after = before;
        const std::string target = fmt::format("line {}\n", 10 + random.below(20));
        after.replace(after.find(target), target.size(), "changed\n");
        const std::string diff = make_diff("f", &before, &after);
        std::string moved;
        for (std::size_t i = random.below(30); i > 0; --i) moved += fmt::format("new {}\n", i);
        const std::string expected = moved + after;
        moved += before;
        CHECK(applied(moved, diff) == expected);
        folder.write("f", moved);
        folder.write("p", diff);
        std::string out;
        REQUIRE(shell("cd '" + folder.path().string() + "' && git apply p", out) == 0);
        CHECK(folder.read("f") == expected);
    }
}

TEST_CASE("equal changes have equal normal forms", "[text]") {
    const std::string here = kHeader + kHunk;
    const std::string there =
        "diff --git a/f.py b/f.py\nindex 1..2 100644\n--- f.py\n+++ f.py\n@@ -90,3 +91,3 @@ def f():\n line "
        "2\n+three\n-line 3\n line 4\n";
    const auto normal = normalise_diff(here);
    REQUIRE(normal);
    CHECK(*normal == "--- f.py\n+++ f.py\n@@\n line 2\n-line 3\n+three\n line 4\n");
    CHECK(normalise_diff(there).value() == *normal);
    const std::string other = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n";
    CHECK(normalise_diff(here + other).value() == normalise_diff(other + here).value());
    CHECK(normalise_diff(other).value() != *normal);
    CHECK_FALSE(normalise_diff("words"));
}

TEST_CASE("large texts are compared quickly", "[text]") {
    Random random(5);
    std::string before, after;
    for (int i = 0; i < 10'000; ++i) {
        const std::string line = i % 3 == 0 ? "    return x\n" : fmt::format("line {}\n", i);
        before += line;
        after += i % 500 == 7 ? "changed\n" : line;
    }
    const auto start = std::chrono::steady_clock::now();
    const std::string diff = make_diff("f", &before, &after);
    const auto took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    CHECK(std::count(diff.begin(), diff.end(), '+') == 20 + 3 + 20);
    CHECK(applied(before, diff) == after);
    CHECK(took < 500);  // 10 ms unoptimised; only a quadratic search takes this long

    // Little in common and few distinct lines, the worst case for Myers: bounded, and still right.
    std::string left, right;
    for (int i = 0; i < 10'000; ++i) {
        left += fmt::format("{}\n", random.below(5));
        right += fmt::format("{}\n", random.below(5));
    }
    CHECK(applied(left, make_diff("f", &left, &right)) == right);
}
