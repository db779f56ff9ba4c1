#include "core/base/value.h"

#include <nlohmann/json.hpp>

using namespace infrarsi;

TEST_CASE("scalars read as YAML's core schema reads them", "[base]") {
    CHECK(is_null(value_from_text("")));
    CHECK(is_null(value_from_text("null")));
    CHECK(value_from_text("true") == Value{true});
    CHECK(value_from_text("12") == Value{std::int64_t{12}});
    CHECK(value_from_text("-3e-4") == Value{-3e-4});
    CHECK(value_from_text("12x") == Value{std::string("12x")});
    CHECK(value_from_text("99999999999999999999") == Value{1e20});
}

TEST_CASE("values survive JSON", "[base]") {
    const Settings settings{
        {"a", true}, {"b", std::int64_t{4}}, {"c", 0.5}, {"d", std::string("full")}, {"e", Value{}}};
    const auto back = settings_from_json(nlohmann::json::parse(to_json(settings).dump()));
    REQUIRE(back);
    CHECK(*back == settings);
    CHECK_FALSE(value_from_json(nlohmann::json::array()));
}

TEST_CASE("two spellings of one effect are the same", "[base]") {
    CHECK(same_effect(Value{std::int64_t{1}}, Value{1.0}));
    CHECK(same_effect(Value{std::string("True")}, Value{true}));
    CHECK_FALSE(same_effect(Value{}, Value{std::int64_t{0}}));
    CHECK_FALSE(same_effect(Value{std::string("full")}, Value{std::string("none")}));
}
