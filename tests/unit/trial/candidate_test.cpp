#include "core/trial/candidate.h"

#include <nlohmann/json.hpp>

using namespace infrarsi;

namespace {

const std::string kDiff = "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n import torch\n-x = 1\n+x = 2\n y = 3\n";

}  // namespace

TEST_CASE("equal changes are one patch, whatever stands around them", "[trial]") {
    const std::string dressed =
        "diff --git a/train.py b/train.py\nindex 1111111..2222222 100644\n--- a/train.py\n+++ b/train.py\n"
        "@@ -1,3 +1,3 @@ def main():\n import torch\n-x = 1\n+x = 2\n y = 3\n";
    const Patch plain{"one", kDiff, "user"};
    CHECK(plain.digest() == Patch{"another title", dressed, "llm:m"}.digest());
    std::string other = kDiff;
    other.replace(other.find("x = 2"), 5, "x = 4");
    CHECK(plain.digest() != Patch{"one", other, "user"}.digest());
    CHECK(Patch{"", "not a diff", ""}.digest() != Patch{"", "not a diff either", ""}.digest());
}

TEST_CASE("a signature is the identity of what runs", "[trial]") {
    const Candidate a{{{"micro_batch", std::int64_t{4}}, {"compile", true}}, {}};
    const Candidate spelled{{{"compile", std::string("true")}, {"micro_batch", 4.0}}, {}};
    CHECK(a.signature() == spelled.signature());
    CHECK(a.signature().size() == 64);
    CHECK(a.signature() != Candidate{}.signature());
    CHECK(Candidate{{{"x", Value{}}}, {}}.signature() != Candidate{{{"x", std::string()}}, {}}.signature());

    Candidate patched = a;
    patched.patches = {{"one", kDiff, "user"}};
    CHECK(patched.signature() != a.signature());
    Candidate renamed = patched;
    renamed.patches[0].title = "two";
    CHECK(patched.signature() == renamed.signature());
}

TEST_CASE("a candidate says what it is in a line", "[trial]") {
    Candidate candidate{{{"micro_batch", std::int64_t{4}}, {"compile", true}}, {}};
    CHECK(candidate.describe() == "compile=true micro_batch=4");
    candidate.patches = {{"sdpa", "", "user"}};
    CHECK(candidate.describe() == "compile=true micro_batch=4 + patch sdpa");
    candidate.patches.resize(5);
    candidate.settings.clear();
    CHECK(candidate.describe() == "reference + patch sdpa + a patch + a patch + 2 more");
    CHECK(Candidate{}.is_reference());
    CHECK_FALSE(candidate.is_reference());
}

TEST_CASE("candidates survive JSON and refuse what is none", "[trial]") {
    const Candidate candidate{{{"a", 0.5}, {"b", Value{}}}, {{"t", kDiff, "recipe:sdpa"}}};
    const auto back = candidate_from_json(nlohmann::json::parse(to_json(candidate).dump()));
    REQUIRE(back);
    CHECK(back->settings == candidate.settings);
    REQUIRE(back->patches.size() == 1);
    CHECK(back->patches[0].diff == kDiff);
    CHECK(back->patches[0].title == "t");
    CHECK(back->patches[0].origin == "recipe:sdpa");

    for (const char* bad : {"[]", "{}", R"({"settings": {}})", R"({"settings": [], "patches": []})",
                            R"({"settings": {}, "patches": {}})", R"({"settings": {}, "patches": ["x"]})",
                            R"({"settings": {}, "patches": [{"title": "t", "diff": 3, "origin": ""}]})",
                            R"({"settings": {"a": [1]}, "patches": []})"}) {
        INFO(bad);
        const auto read = candidate_from_json(nlohmann::json::parse(bad));
        REQUIRE_FALSE(read);
        CHECK(read.error().kind() == ErrorKind::invalid_input);
    }
}
