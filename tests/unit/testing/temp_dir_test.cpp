#include "core/testing/temp_dir.h"

using namespace infrarsi;
namespace fs = std::filesystem;

TEST_CASE("a temporary folder holds what was written and goes away", "[testing]") {
    fs::path where;
    {
        TempDir folder({{"a.txt", "one"}, {"sub/deep/b.txt", "two\n"}});
        where = folder.path();
        folder.write("sub/c.txt", "three");
        CHECK(folder.read("sub/deep/b.txt") == "two\n");
        CHECK(read_tree(where) == std::map<std::string, std::string>{
                                      {"a.txt", "one"}, {"sub/c.txt", "three"}, {"sub/deep/b.txt", "two\n"}});
        TempDir moved(std::move(folder));
        CHECK(moved.path() == where);
        CHECK(fs::exists(where));
        fs::permissions(where / "sub", fs::perms::owner_read | fs::perms::owner_exec);
    }
    CHECK_FALSE(fs::exists(where));
}
