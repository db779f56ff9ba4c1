#include "core/campaign/user_key.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/digest.h"
#include "core/base/files.h"

namespace infrarsi {

namespace {
constexpr std::size_t kKeyBytes = 32;
}

Expected<std::string> user_key(const std::filesystem::path& config_dir) {
    const std::filesystem::path path = config_dir / "key";
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        INFRARSI_TRY(make_folders(config_dir));
        // Written aside and linked, so that of two first runs at once both end with the same key.
        const std::filesystem::path draft = config_dir / ("key." + random_hex(4));
        INFRARSI_TRY(write_file(draft, random_hex(kKeyBytes) + "\n", 0600));
        const bool linked = ::link(draft.c_str(), path.c_str()) == 0;
        const int error = errno;
        ::unlink(draft.c_str());
        if (!linked && error != EEXIST) {
            return fail(ErrorKind::io, "cannot make the signing key {}: {}", path.string(), errno_text(error));
        }
        if (::stat(path.c_str(), &status) != 0) {
            return fail(ErrorKind::io, "cannot read the signing key {}: {}", path.string(), errno_text(errno));
        }
    }
    if ((status.st_mode & 077) != 0) {
        return fail(ErrorKind::invalid_input,
                    "the signing key {} can be read by others, so receipts would prove nothing: run `chmod 600 {}`",
                    path.string(), path.string());
    }
    INFRARSI_ASSIGN(std::string key, read_file(path));
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
    if (key.size() != 2 * kKeyBytes || key.find_first_not_of("0123456789abcdef") != std::string::npos) {
        return fail(ErrorKind::corrupt,
                    "the signing key {} is not {} hexadecimal digits: restore it, or move it away (runs signed with it "
                    "can then no longer be verified)",
                    path.string(), 2 * kKeyBytes);
    }
    return key;
}

}  // namespace infrarsi
