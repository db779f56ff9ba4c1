#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/digest.h"
#include "core/base/owned_fd.h"

namespace infrarsi {

namespace fs = std::filesystem;

Expected<std::string> read_file(const fs::path& path, std::size_t limit_bytes) {
    const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
        const int error = errno;
        return fail(errno_kind(error), "cannot read {}: {}", path.string(), errno_text(error));
    }
    std::string text;
    char buffer[1 << 16];
    for (;;) {
        const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail(ErrorKind::io, "cannot read {}: {}", path.string(), errno_text(errno));
        if (count == 0) return text;
        text.append(buffer, static_cast<std::size_t>(count));
        if (text.size() > limit_bytes) {
            return fail(ErrorKind::resource, "{} is larger than {} MiB, too large to read whole", path.string(),
                        limit_bytes >> 20);
        }
    }
}

Expected<void> write_file(const fs::path& path, std::string_view text, int mode) {
    std::error_code ignored;
    fs::path target = path;
    if (fs::is_symlink(path, ignored)) {
        if (fs::path resolved = fs::canonical(path, ignored); !ignored) target = resolved;
    }
    struct stat old{};
    if (::stat(target.c_str(), &old) == 0) mode = static_cast<int>(old.st_mode & 07777);
    const fs::path temporary =
        target.parent_path() / fmt::format(".{}.{}.tmp", target.filename().string(), random_hex(4));
    const auto give_up = [&](int error, const char* step) {
        ::unlink(temporary.c_str());
        return fail(errno_kind(error), "cannot {} {}: {}; nothing was changed", step, target.string(),
                    errno_text(error));
    };
    {
        const OwnedFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (file.get() < 0) return give_up(errno, "write");
        std::string_view rest = text;
        while (!rest.empty()) {
            const ssize_t count = ::write(file.get(), rest.data(), rest.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return give_up(errno, "write");
            rest.remove_prefix(static_cast<std::size_t>(count));
        }
        if (::fchmod(file.get(), static_cast<mode_t>(mode)) != 0) return give_up(errno, "set the mode of");
        if (::fsync(file.get()) != 0) return give_up(errno, "flush");
    }
    if (::rename(temporary.c_str(), target.c_str()) != 0) return give_up(errno, "replace");
    sync_folder(target.parent_path());
    return {};
}

Expected<void> make_folders(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return fail(errno_kind(error.value()), "cannot make the folder {}: {}", path.string(), error.message());
    return {};
}

Expected<void> remove_tree(const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    if (!error) return {};
    for (auto it = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
         it != fs::recursive_directory_iterator(); it.increment(error)) {
        std::error_code ignored;
        if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
            fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
        }
    }
    error.clear();
    fs::remove_all(path, error);
    if (error) return fail(ErrorKind::io, "cannot remove {}: {}", path.string(), error.message());
    return {};
}

void sync_folder(const fs::path& path) {
    const OwnedFd folder(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0) ::fsync(folder.get());
}

}  // namespace infrarsi
