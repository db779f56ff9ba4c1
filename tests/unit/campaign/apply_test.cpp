#include "core/campaign/apply.h"

#include "core/testing/temp_dir.h"

using namespace infrarsi;

TEST_CASE("a plan is written as a whole, deletions included", "[campaign]") {
    const TempDir dir({{"a.py", "old\n"}, {"gone.py", "x\n"}});
    ApplyPlan plan;
    plan.root = dir.path();
    plan.files = {{"a.py", "old\n", "new\n", {}},
                  {"gone.py", "x\n", std::nullopt, {}},
                  {"sub/b.sh", std::nullopt, "#!/bin/sh\n", {}}};
    REQUIRE(write_plan(plan, dir / "backup"));
    CHECK(dir.read("a.py") == "new\n");
    CHECK_FALSE(std::filesystem::exists(dir / "gone.py"));
    CHECK(dir.read("sub/b.sh") == "#!/bin/sh\n");
    CHECK(dir.read("backup/a.py") == "old\n");
    CHECK(dir.read("backup/gone.py") == "x\n");
}

TEST_CASE("a write that fails puts back what was written before it", "[campaign]") {
    const TempDir dir({{"a.py", "old\n"}, {"gone.py", "x\n"}, {"file", "not a folder\n"}});
    ApplyPlan plan;
    plan.root = dir.path();
    plan.files = {{"a.py", "old\n", "new\n", {}}, {"gone.py", "x\n", std::nullopt, {}}};
    std::filesystem::create_symlink("nowhere", dir / "sub");  // reads as missing, and no folder can be made there
    plan.files.push_back({"sub/new.py", std::nullopt, "x\n", {}});
    const auto written = write_plan(plan, dir / "backup");
    REQUIRE_FALSE(written);
    CHECK(dir.read("a.py") == "old\n");
    CHECK(dir.read("gone.py") == "x\n");
}

TEST_CASE("a file that moved since the plan was shown is not overwritten", "[campaign]") {
    const TempDir dir({{"a.py", "edited meanwhile\n"}});
    ApplyPlan plan;
    plan.root = dir.path();
    plan.files = {{"a.py", "old\n", "new\n", {}}};
    CHECK(write_plan(plan, dir / "backup").error().kind() == ErrorKind::conflict);
    CHECK(dir.read("a.py") == "edited meanwhile\n");
}
