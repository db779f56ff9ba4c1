#include "core/repo/config_file.h"

using namespace infrarsi;

namespace {

std::string keys(std::string_view text, ConfigFormat format) {
    const auto scalars = config_scalars(text, format, "c");
    if (!scalars) return "error: " + scalars.error().describe();
    std::string line;
    for (const ConfigScalar& scalar : *scalars) {
        line += fmt::format("{}:{}={} ", scalar.line, scalar.key, to_text(scalar.value));
    }
    return line;
}

}  // namespace

TEST_CASE("scalars of the three formats are read with their lines", "[repo]") {
    CHECK(keys("a: 1\nb:\n  c: [x, 2]\n  d: \"3\"\n  e:\n", ConfigFormat::yaml) ==
          "1:a=1 3:b.c.0=x 3:b.c.1=2 4:b.d=3 5:b.e=null ");
    CHECK(keys("{\"a\": 1.5, // note\n \"b\": {\"c\": [true, {\"d\": null}], \"e\": \"x\\\"y\"},}",
               ConfigFormat::json) == "1:a=1.5 2:b.c.0=true 2:b.c.1.d=null 2:b.e=x\"y ");
    CHECK(keys("x = 1_000 # c\n[a.\"b\"]\ny = 'q' \nz = { k = 2, l = \"#\" }\n[[t]]\nu = [1,\n 2]\n[[t]]\nu = 3\n",
               ConfigFormat::toml) == "1:x=1000 3:a.b.y=q 4:a.b.z.k=2 4:a.b.z.l=# 6:t.0.u.0=1 7:t.0.u.1=2 9:t.1.u=3 ");
    CHECK(keys("a = \"x\\\"y\" # c\nb = 1\n", ConfigFormat::toml) == "1:a=x\"y 2:b=1 ");
    CHECK(keys("s = \"\"\"a = 1\nb = 2\"\"\"\nt = 4\n", ConfigFormat::toml).find("3:t=4") != std::string::npos);
}

TEST_CASE("one scalar is replaced and every other byte kept", "[repo]") {
    const std::string yaml = "# job\nmodel:\n  recompute: full   # why\n  name: 'x'\n";
    CHECK(set_config(yaml, ConfigFormat::yaml, "model.recompute", Value{std::string("selective")}, "c").value() ==
          "# job\nmodel:\n  recompute: selective   # why\n  name: 'x'\n");
    const std::string json = "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"e\": {}\n}";
    CHECK(set_config(json, ConfigFormat::json, "a.b", Value{true}, "c").value() ==
          "{\n  \"a\": {\n    \"b\": true\n  },\n  \"e\": {}\n}");
    CHECK(set_config(json, ConfigFormat::json, "a.c", Value{std::int64_t{2}}, "c").value() ==
          "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": 2\n  },\n  \"e\": {}\n}");
    CHECK(set_config(json, ConfigFormat::json, "e.f", Value{std::string("x")}, "c")
              .value()
              .find("\"e\": {\"f\": \"x\"}") != std::string::npos);
    const std::string toml = "a = 1 # one\n\n[t]\nb = 'x'\n";
    CHECK(set_config(toml, ConfigFormat::toml, "t.b", Value{std::string("y")}, "c").value() ==
          "a = 1 # one\n\n[t]\nb = \"y\"\n");
    CHECK(set_config(toml, ConfigFormat::toml, "t.b", Value{}, "c").value() == "a = 1 # one\n\n[t]\n");
    CHECK(set_config(toml, ConfigFormat::toml, "t.c", Value{std::int64_t{3}}, "c").value() ==
          "a = 1 # one\n\n[t]\nb = 'x'\nc = 3\n");
    CHECK(set_config(toml, ConfigFormat::toml, "z", Value{false}, "c").value() ==
          "a = 1 # one\nz = false\n\n[t]\nb = 'x'\n");
}

TEST_CASE("broken files and wrong keys are errors with a place", "[repo]") {
    CHECK(keys("a: [1\n", ConfigFormat::yaml).find("c:") != std::string::npos);
    CHECK(keys("{\"a\": }", ConfigFormat::json).find("c:1:7") != std::string::npos);
    CHECK(keys("a = \"x\n", ConfigFormat::toml).find("c:1") != std::string::npos);
    CHECK(keys(std::string(5000, '['), ConfigFormat::json).find("nested too deeply") != std::string::npos);
    CHECK(get_config("{}", ConfigFormat::json, "a", "c").error().kind() == ErrorKind::not_found);
    CHECK(set_config("{\"a\": [1]}", ConfigFormat::json, "a", Value{true}, "c").error().kind() ==
          ErrorKind::invalid_input);
    CHECK(set_config("{}", ConfigFormat::json, "a.b", Value{true}, "c").error().kind() == ErrorKind::not_found);
    CHECK_FALSE(config_format("train.py"));
}
