#include "server/cli/places.h"

#include <pwd.h>
#include <unistd.h>

namespace infrarsi {

namespace fs = std::filesystem;

fs::path config_dir(const std::map<std::string, std::string>& env) {
    const auto value = [&](const char* name) {
        const auto it = env.find(name);
        return it == env.end() ? std::string() : it->second;
    };
    if (const auto xdg = value("XDG_CONFIG_HOME"); !xdg.empty()) return fs::path(xdg) / "infrarsi";
    if (const auto home = value("HOME"); !home.empty()) return fs::path(home) / ".config" / "infrarsi";
    const passwd* user = ::getpwuid(::getuid());
    return fs::path(user && user->pw_dir ? user->pw_dir : "/") / ".config" / "infrarsi";
}

fs::path data_dir() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        const fs::path installed = program.parent_path().parent_path() / "share" / "infrarsi";
        if (fs::exists(installed / "adapters" / "agent", error)) return installed;
    }
    return INFRARSI_SOURCE_DIR;
}

}  // namespace infrarsi
