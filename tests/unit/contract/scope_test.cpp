#include "core/contract/scope.h"

#include "core/base/env.h"

using namespace infrarsi;

namespace {

bool matches(const std::string& pattern, const std::string& path) {
    const auto glob = Glob::parse(pattern);
    REQUIRE(glob);
    return glob->matches(path);
}

}  // namespace

TEST_CASE("globs match what they say", "[contract]") {
    struct Case {
        std::string pattern;
        std::vector<std::string> yes, no;
    };
    const std::vector<Case> cases{
        {"train.py", {"train.py"}, {"a/train.py", "train.pyc", "Train.py", "trainxpy", ""}},
        {"./train.py", {"train.py"}, {"./train.py"}},
        {"*.py", {"a.py", ".py", "ä b.py"}, {"d/a.py", "a.pyc"}},
        {"**.py", {"a.py", "d/a.py", "d/e/f.py"}, {"a.pyc"}},
        {"model/**.py", {"model/a.py", "model/x/a.py"}, {"model.py", "amodel/a.py", "model/a.txt"}},
        {"**/x.py", {"x.py", "a/x.py", "a/b/x.py"}, {"ax.py", "a/bx.py"}},
        {"a/**/b", {"a/b", "a/x/b", "a/x/y/b"}, {"ab", "a/xb", "xa/b", "a/b/c"}},
        {"data/**", {"data/x", "data/x/y", "data/.hidden", "data/ä/ö"}, {"data", "mydata/x", "datax", "x/data/y"}},
        {"**/data/**", {"data/x", "a/data/x/y"}, {"data", "mydata/x"}},
        {"**", {"a", "a/b", ".x"}, {}},
        {"**/*", {"a", "a/b"}, {}},
        {"*/*", {"a/b"}, {"a", "a/b/c"}},
        {"a*c*e", {"ace", "abcde", "accee"}, {"abcd", "a/ce"}},
        {"?.py", {"a.py", "ä.py", "漢.py"}, {"ab.py", ".py", "/.py"}},
        {"[a-c]x", {"ax", "cx"}, {"dx", "x", "/x"}},
        {"[!a-c]x", {"dx", "äx"}, {"ax", "/x"}},
        {"[^a]x", {"bx"}, {"ax"}},
        {"[]x]y", {"]y", "xy"}, {"yy"}},
        {"[ä-ü]", {"ö"}, {"o"}},
        {"[a-]", {"a", "-"}, {"b"}},
        {"{a,b}.py", {"a.py", "b.py"}, {"c.py", "{a,b}.py"}},
        {"{a,b/{c,d}}/x", {"a/x", "b/c/x", "b/d/x"}, {"b/x"}},
        {"a{,.bak}", {"a", "a.bak"}, {"b"}},
        {"dir with space/*", {"dir with space/a b"}, {"dir"}},
        {"\\[a\\]*", {"[a]", "[a]b"}, {"a"}},
        {"a\\*b", {"a*b"}, {"axb"}},
        {"\\{a\\}", {"{a}"}, {"a"}},
    };
    for (const Case& c : cases) {
        CAPTURE(c.pattern);
        for (const auto& path : c.yes) {
            CAPTURE(path);
            CHECK(matches(c.pattern, path));
        }
        for (const auto& path : c.no) {
            CAPTURE(path);
            CHECK_FALSE(matches(c.pattern, path));
        }
    }
}

TEST_CASE("globs that cannot be meant are refused", "[contract]") {
    for (const auto* pattern : {"", ".", "/etc/*", "~/x", "../x", "a/../b", "{..,a}/b", "{/etc,a}", "[abc", "{a,b",
                                "a}", "x\\", "data/", "[z-a]", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"}) {
        CAPTURE(pattern);
        const auto glob = Glob::parse(pattern);
        REQUIRE_FALSE(glob);
        CHECK(glob.error().kind() == ErrorKind::invalid_input);
    }
    CHECK(matches("a..b/*", "a..b/c"));
}

namespace {

// The same language by plain recursion, for patterns of letters, /, ?, *, ** alone.
bool slow_match(std::string_view p, std::string_view s, bool folder_start) {
    if (p.empty()) return s.empty();
    if (p.starts_with("**")) {
        std::string_view rest = p.substr(2);
        while (rest.starts_with('*')) rest.remove_prefix(1);
        if (folder_start && rest.starts_with('/')) {
            rest.remove_prefix(1);
            if (slow_match(rest, s, true)) return true;
            for (std::size_t i = 0; i < s.size(); ++i) {
                if (s[i] == '/' && slow_match(rest, s.substr(i + 1), true)) return true;
            }
            return false;
        }
        for (std::size_t i = 0; i <= s.size(); ++i) {
            if (slow_match(rest, s.substr(i), false)) return true;
        }
        return false;
    }
    if (p.front() == '*') {
        for (std::size_t i = 0; i <= s.size(); ++i) {
            if (slow_match(p.substr(1), s.substr(i), false)) return true;
            if (i < s.size() && s[i] == '/') break;
        }
        return false;
    }
    if (s.empty()) return false;
    if (p.front() == '?' ? s.front() == '/' : p.front() != s.front()) return false;
    return slow_match(p.substr(1), s.substr(1), p.front() == '/');
}

}  // namespace

TEST_CASE("globs agree with a plain recursion on random patterns", "[contract]") {
    Random random(11);
    const auto make = [&](std::string_view letters, std::size_t longest) {
        std::string text;
        for (std::size_t i = 1 + random.below(longest); i > 0; --i) text += letters[random.below(letters.size())];
        return text;
    };
    int matched = 0;
    for (int round = 0; round < 30'000; ++round) {
        const std::string pattern = make("ab/**?", 8), path = make("ab/", 8);
        const auto glob = Glob::parse(pattern);
        if (!glob) continue;
        CAPTURE(pattern, path);
        const bool expected = slow_match(pattern, path, true);
        REQUIRE(glob->matches(path) == expected);
        matched += expected;
        if (!expected) continue;
        // Whatever matches below a folder must be reachable by a walk.
        for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
            if (slash > 0) REQUIRE(glob->may_match_below(path.substr(0, slash)));
        }
    }
    CHECK(matched > 1000);
}

TEST_CASE("a pattern made to be slow is not", "[contract]") {
    std::string pattern, path(400, 'a');
    for (int i = 0; i < 60; ++i) pattern += "*a";
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(matches(pattern + "b", path + "c"));
    CHECK(matches(pattern, path));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
}

TEST_CASE("walks know what they may skip", "[contract]") {
    const auto below = [](const char* pattern, const char* folder) {
        return Glob::parse(pattern)->may_match_below(folder);
    };
    CHECK(below("data/**", "data"));
    CHECK(below("data/x/*.bin", "data"));
    CHECK(below("data/**", "data/x"));
    CHECK_FALSE(below("data/**", "src"));
    CHECK_FALSE(below("data/**", "mydata"));
    CHECK_FALSE(below("eval.py", "eval"));
    CHECK(below("a/b/c.py", "a/b"));
    CHECK_FALSE(below("a/b/c.py", "a/c"));
    CHECK(below("**.py", "anything"));
    CHECK(Glob::parse("web/node_modules/x/**")->names_folder("node_modules"));
    CHECK_FALSE(Glob::parse("**/node_modules_x/**")->names_folder("node_modules"));
    CHECK_FALSE(Glob::parse("**")->names_folder(".venv"));
}

TEST_CASE("frozen wins over editable, and ours is always frozen", "[contract]") {
    Contract contract;
    contract.root = "/p";
    contract.file = "/p/conf/job.yaml";
    contract.editable = {"model/**.py", "train.py", "**/*.yaml"};
    contract.frozen = {"model/loss.py", "data/**"};
    const auto scope = Scope::of(contract);
    REQUIRE(scope);
    const std::vector<std::pair<std::string, ScopeState>> cases{{"train.py", ScopeState::editable},
                                                                {"./train.py", ScopeState::editable},
                                                                {"model/a.py", ScopeState::editable},
                                                                {"model/loss.py", ScopeState::frozen},
                                                                {"model/x/../loss.py", ScopeState::frozen},
                                                                {"data/x", ScopeState::frozen},
                                                                {"README.md", ScopeState::outside},
                                                                {"infrarsi.yaml", ScopeState::frozen},
                                                                {"conf/job.yaml", ScopeState::frozen},
                                                                {"infrarsi.lock", ScopeState::frozen},
                                                                {".infrarsi/runs/x.yaml", ScopeState::frozen},
                                                                {".git/hooks/x.yaml", ScopeState::frozen},
                                                                {".gitignore", ScopeState::outside},
                                                                {"../train.py", ScopeState::outside},
                                                                {"/p/train.py", ScopeState::outside},
                                                                {"a/../../train.py", ScopeState::outside},
                                                                {"", ScopeState::outside},
                                                                {"conf/other.yaml", ScopeState::editable}};
    for (const auto& [path, state] : cases) {
        CAPTURE(path);
        CHECK(to_string(scope->state(path)) == to_string(state));
    }
    contract.frozen.emplace_back("[x");
    CHECK_FALSE(Scope::of(contract));
}
