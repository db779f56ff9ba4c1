#include "core/contract/yaml_edit.h"

#include "core/base/yaml_node.h"

using namespace infrarsi;

namespace {

using Path = std::vector<std::string>;

std::string set(const std::string& text, const Path& path, const Value& value) {
    const auto result = set_yaml_scalar(text, path, value);
    return result ? *result : "{" + result.error().describe() + "}";
}

Value whole(std::int64_t number) {
    return number;
}

}  // namespace

TEST_CASE("one scalar changes and every other byte stays", "[contract]") {
    struct Case {
        std::string name, before;
        Path path;
        Value value;
        std::string after;
    };
    const std::string text = "text";
    const std::vector<Case> cases{
        {"plain", "a: 1  # one\nb: 2\n", {"a"}, whole(5), "a: 5  # one\nb: 2\n"},
        {"nested", "a:\n  b:\n    c: old value # x\n", {"a", "b", "c"}, text, "a:\n  b:\n    c: text # x\n"},
        {"flow",
         "k: {flag: --x, values: [1, 2], reference: 1}\n",
         {"k", "reference"},
         whole(2),
         "k: {flag: --x, values: [1, 2], reference: 2}\n"},
        {"item", "a: [x, \"y, z\", w]\n", {"a", "1"}, text, "a: [x, text, w]\n"},
        {"block item", "a:\n  - x\n  - y # why\n", {"a", "1"}, text, "a:\n  - x\n  - text # why\n"},
        {"double quoted", "a: \"x \\\" # y\" # z\n", {"a"}, text, "a: text # z\n"},
        {"single quoted", "a: 'it''s' # z\n", {"a"}, text, "a: text # z\n"},
        {"literal block", "a: |\n  one\n\n  two\nb: 1\n", {"a"}, text, "a: text\nb: 1\n"},
        {"folded block last", "b: 1\na: >-\n  one\n  two\n", {"a"}, text, "b: 1\na: text\n"},
        {"nested block", "l:\n  c: |\n    x\n    y\n  d: 2\n", {"l", "c"}, text, "l:\n  c: text\n  d: 2\n"},
        {"null", "a: null\nb: ~\n", {"b"}, whole(1), "a: null\nb: 1\n"},
        {"empty", "a:   # nothing\nb: 1\n", {"a"}, whole(1), "a: 1   # nothing\nb: 1\n"},
        {"empty at the end", "b: 1\na:", {"a"}, whole(1), "b: 1\na: 1"},
        {"to null", "a: 1\n", {"a"}, Value{}, "a: null\n"},
        {"url", "a: http://x/y#z\n", {"a"}, text, "a: text\n"},
        {"crlf", "a: 1\r\nb: 2\r\n", {"a"}, whole(3), "a: 3\r\nb: 2\r\n"},
        {"bom",
         "\xEF\xBB\xBF"
         "a: 1\n",
         {"a"},
         whole(3),
         "\xEF\xBB\xBF"
         "a: 3\n"},
        {"non-ASCII before", "ä: ü\na: 1\n", {"a"}, whole(3), "ä: ü\na: 3\n"},
        {"quoted key", "\"a b\": 1\n", {"a b"}, whole(3), "\"a b\": 3\n"},
        {"awkward text", "a: 1\n", {"a"}, std::string("x: #y\n\"z\""), "a: \"x: #y\\n\\\"z\\\"\"\n"},
        {"add", "a: 1\nb: 2\n", {"c"}, whole(3), "a: 1\nb: 2\nc: 3\n"},
        {"add without newline", "a: 1", {"c"}, whole(3), "a: 1\nc: 3"},
        {"add nested",
         "a:\n  b: 1 # x\n\n# next\nz: 1\n",
         {"a", "c"},
         whole(3),
         "a:\n  b: 1 # x\n  c: 3\n\n# next\nz: 1\n"},
        {"add after a block",
         "a:\n  b: |\n    x\n\n    y\nz: 1\n",
         {"a", "c"},
         whole(3),
         "a:\n  b: |\n    x\n\n    y\n  c: 3\nz: 1\n"},
        {"add after a list",
         "a:\n  b:\n  - x\n  - y\nz: 1\n",
         {"a", "c"},
         whole(3),
         "a:\n  b:\n  - x\n  - y\n  c: 3\nz: 1\n"},
        {"add to flow", "a: {b: 1}\n", {"a", "c"}, whole(3), "a: {b: 1, c: 3}\n"},
        {"add to empty flow", "a: {}\n", {"a", "c"}, whole(3), "a: {c: 3}\n"},
        {"add to flow with tail", "a: {b: \"}\", }\n", {"a", "c"}, whole(3), "a: {b: \"}\", c: 3 }\n"},
        {"add to nothing",
         "llm:  # none yet\nz: 1\n",
         {"llm", "backend"},
         text,
         "llm:  # none yet\n  backend: text\nz: 1\n"},
        {"add to an empty file", "# head\n", {"a"}, whole(1), "# head\na: 1\n"},
        {"add crlf", "a: 1\r\n", {"b"}, whole(1), "a: 1\r\nb: 1\r\n"},
        {"in a list of maps",
         "l:\n  - n: 1\n    m: 2\n  - n: 3\n",
         {"l", "1", "n"},
         whole(4),
         "l:\n  - n: 1\n    m: 2\n  - n: 4\n"},
        {"add in a list of maps",
         "l:\n  - n: 1\n  - n: 3\n",
         {"l", "0", "m"},
         whole(4),
         "l:\n  - n: 1\n    m: 4\n  - n: 3\n"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.name);
        const std::string after = set(c.before, c.path, c.value);
        CHECK(after == c.after);
        const auto back = get_yaml_scalar(after, c.path);
        REQUIRE(back);
        CHECK(*back == c.value);
    }
}

TEST_CASE("edits that cannot be made in place are refused", "[contract]") {
    const auto refused = [](const std::string& text, const Path& path, ErrorKind kind) {
        CAPTURE(text);
        const auto result = set_yaml_scalar(text, path, Value{true});
        REQUIRE_FALSE(result);
        CHECK(result.error().kind() == kind);
    };
    refused("a: 1\n", {"b", "c"}, ErrorKind::not_found);
    refused("a: 1\n", {"a", "c"}, ErrorKind::not_found);
    refused("a: [1]\n", {"a", "1"}, ErrorKind::not_found);
    refused("a: [1]\n", {"a", "x"}, ErrorKind::not_found);
    refused("a: {b: 1}\n", {"a"}, ErrorKind::invalid_input);
    refused("a: [1]\n", {"a"}, ErrorKind::invalid_input);
    refused("a: &x 1\nb: *x\n", {"a"}, ErrorKind::invalid_input);
    refused("a: &x 1\nb: *x\n", {"b"}, ErrorKind::invalid_input);
    refused("a: &x {c: 1}\nb: *x\n", {"b", "c"}, ErrorKind::invalid_input);
    refused("a: &x {c: 1}\nb: *x\n", {"a", "c"}, ErrorKind::invalid_input);  // b would change too
    refused("a: !!str 1\n", {"a"}, ErrorKind::invalid_input);
    refused("a: 1\na: 2\n", {"a"}, ErrorKind::invalid_input);
    refused("a: one\n  two\n", {"a"}, ErrorKind::invalid_input);
    refused("a: [\n", {"a"}, ErrorKind::invalid_input);
    refused("a: 1\n", {}, ErrorKind::invalid_input);
    refused("a: null\n", {"a", "b"}, ErrorKind::invalid_input);
    CHECK(get_yaml_scalar("a: 1\n", {"b"}).error().kind() == ErrorKind::not_found);
    CHECK(get_yaml_scalar("a: [1]\n", {"a"}).error().kind() == ErrorKind::invalid_input);
    CHECK(get_yaml_scalar("a: \"1\"\n", {"a"}).value() == Value{std::string("1")});
}

TEST_CASE("scalars are quoted where they must be", "[contract]") {
    CHECK(yaml_scalar(Value{}) == "null");
    CHECK(yaml_scalar(true) == "true");
    CHECK(yaml_scalar(0.5) == "0.5");
    for (const auto* plain : {"full", "bash train.sh --lr=1e-3", "a/b_c.d"})
        CHECK(yaml_scalar(std::string(plain)) == plain);
    for (const auto* text : {"",     " a",         "a ",   "on",  "Off", "yes",   "NO",   "y",    "null",
                             "None", "~",          "true", "1e3", "12",  "0x10",  "1:30", "-",    "- a",
                             "a: b", "a #b",       "a,b",  "[a]", "{a}", "*a",    "&a",   "!a",   "%a",
                             "@a",   "`a",         "|",    ">",   "'a",  "\"a\"", "a\nb", "a\tb", "\x01",
                             "ü",    "2001-01-01", "?",    ":",   "---", "#a",    "=",    "<<",   "--micro-batch-size",
                             "\\",   "😀",         "a\x7f"}) {
        CAPTURE(text);
        const std::string written = yaml_scalar(std::string(text));
        for (const std::string& document :
             {"k: " + written + "\n", "[" + written + ", x]\n", "{k: " + written + "}\n"}) {
            // The reader refuses control characters only when they stand unescaped.
            const auto node = parse_yaml(document, "");
            REQUIRE(node);
            const YamlNode& scalar = node->kind == YamlNode::Kind::map ? *node->find("k") : node->items[0];
            CHECK(scalar.value() == Value{std::string(text)});
        }
    }
}
