#include "core/text/line_index.h"

#include "core/base/env.h"
#include "core/text/nearest.h"
#include "core/text/utf8.h"

using namespace infrarsi;

TEST_CASE("columns count bytes or UTF-16 units", "[text]") {
    // é is 2 bytes and 1 unit, 😀 is 4 bytes and 2 units.
    const std::string text = "aé😀b\r\nzwei\rdrei\n";
    const LineIndex index(text);
    REQUIRE(index.line_count() == 4);
    CHECK(index.line(0) == "aé😀b");
    CHECK(index.line(1) == "zwei");
    CHECK(index.line(2) == "drei");
    CHECK(index.line(3).empty());
    CHECK(index.line(9).empty());
    struct Case {
        std::size_t offset;
        LineColumn utf8, utf16;
    };
    const std::vector<Case> cases{{0, {0, 0}, {0, 0}},  {1, {0, 1}, {0, 1}}, {3, {0, 3}, {0, 2}},
                                  {7, {0, 7}, {0, 4}},  {8, {0, 8}, {0, 5}}, {10, {1, 0}, {1, 0}},
                                  {15, {2, 0}, {2, 0}}, {20, {3, 0}, {3, 0}}};
    for (const Case& c : cases) {
        CAPTURE(c.offset);
        CHECK(index.position(c.offset, ColumnUnit::utf8) == c.utf8);
        CHECK(index.position(c.offset, ColumnUnit::utf16) == c.utf16);
        CHECK(index.offset(c.utf8, ColumnUnit::utf8) == c.offset);
        CHECK(index.offset(c.utf16, ColumnUnit::utf16) == c.offset);
    }
}

TEST_CASE("positions outside the text are clamped", "[text]") {
    const LineIndex index("é😀\nb");
    CHECK(index.position(1, ColumnUnit::utf16) == LineColumn{0, 0});   // inside é
    CHECK(index.position(99, ColumnUnit::utf16) == LineColumn{1, 1});  // beyond the text
    CHECK(index.offset({0, 2}, ColumnUnit::utf16) == 2);               // between the surrogates
    CHECK(index.offset({0, 50}, ColumnUnit::utf16) == 6);
    CHECK(index.offset({7, 0}, ColumnUnit::utf8) == 8);
    const LineIndex empty("");
    CHECK(empty.line_count() == 1);
    CHECK(empty.position(0, ColumnUnit::utf8) == LineColumn{0, 0});
}

TEST_CASE("offsets come back from positions at every code point", "[text]") {
    Random random(7);
    const std::vector<std::string> pieces{"a", "é", "漢", "😀", "\n", "\r\n", "\r", "\t", "\xff"};
    for (int round = 0; round < 200; ++round) {
        std::string text;
        for (int i = 0; i < 30; ++i) text += pieces[random.below(pieces.size())];
        const LineIndex index(text);
        for (std::size_t at = 0; at < text.size(); at += utf8_length(text, at)) {
            if (text[at] == '\n' && at > 0 && text[at - 1] == '\r') continue;  // inside a line end
            for (const auto unit : {ColumnUnit::utf8, ColumnUnit::utf16}) {
                REQUIRE(index.offset(index.position(at, unit), unit) == at);
            }
        }
    }
}

TEST_CASE("broken UTF-8 is found where it begins", "[text]") {
    CHECK_FALSE(first_invalid_utf8("aé漢😀"));
    const std::vector<std::pair<std::string, std::size_t>> cases{
        {"ab\x80", 2},           {"\xC0\xAF", 0},         {"\xE0\x80\x80", 0}, {"a\xED\xA0\x80", 1},
        {"\xF5\x80\x80\x80", 0}, {"\xF4\x90\x80\x80", 0}, {"x\xE6\xBC", 1},    {std::string("\xFF\xFE", 2), 0}};
    for (const auto& [text, at] : cases) {
        CAPTURE(text);
        CHECK(first_invalid_utf8(text) == at);
    }
}

TEST_CASE("a misspelt word is led back to a near one only", "[text]") {
    const std::vector<std::string> known{"micro_batch", "grad_accum", "compile"};
    CHECK(nearest_word("micro_bacth", known) == "micro_batch");
    CHECK(nearest_word("Compile", known) == "compile");
    CHECK(nearest_word("gradaccum", known) == "grad_accum");
    CHECK_FALSE(nearest_word("recompute_everything", known));
    CHECK_FALSE(nearest_word("", known));
    CHECK(did_you_mean("comple", known) == " (did you mean \"compile\"?)");
    CHECK(did_you_mean("zzz", known).empty());
}
