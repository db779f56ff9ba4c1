#include "core/trial/tree.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/digest.h"
#include "core/base/owned_fd.h"

namespace infrarsi {

namespace fs = std::filesystem;

namespace {

Unexpected cannot(const char* what, const fs::path& path, int error_number) {
    return fail(errno_kind(error_number), "cannot {} {}: {}", what, path.string(), errno_text(error_number));
}

// errno, or 0.
int copy_bytes(int source, int target, std::size_t size) {
    if (size > (1u << 16) && ::ioctl(target, FICLONE, source) == 0) return 0;  // shares extents: free on btrfs, XFS
    while (size > (1u << 16)) {
        const ssize_t count = ::copy_file_range(source, nullptr, target, nullptr, 1u << 30, 0);
        if (count == 0) return 0;
        if (count < 0) break;  // across file systems on old kernels: by hand below, from where it stands
    }
    char buffer[1 << 16];
    for (;;) {
        const ssize_t count = ::read(source, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        if (count == 0) return 0;
        for (ssize_t written = 0; written < count;) {
            const ssize_t part = ::write(target, buffer + written, static_cast<std::size_t>(count - written));
            if (part < 0 && errno != EINTR) return errno;
            if (part > 0) written += part;
        }
    }
}

}  // namespace

Expected<void> copy_source_file(const fs::path& source, const fs::path& target) {
    const OwnedFd from(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!from.is_open()) return cannot("read", source, errno);
    struct stat info{};
    if (::fstat(from.get(), &info) != 0) return cannot("read", source, errno);
    if (!S_ISREG(info.st_mode)) return fail(ErrorKind::io, "cannot copy {}: it is not a regular file", source.string());
    const mode_t mode = (info.st_mode & 0777) | 0600;
    const OwnedFd to(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!to.is_open()) return cannot("create", target, errno);
    if (const int error = copy_bytes(from.get(), to.get(), static_cast<std::size_t>(info.st_size)); error != 0) {
        return cannot("write", target, error);
    }
    const timespec times[2] = {info.st_atim, info.st_mtim};
    ::futimens(to.get(), times);
    return {};
}

Expected<void> make_symlink(const fs::path& points_to, const fs::path& link) {
    if (::symlink(points_to.c_str(), link.c_str()) != 0) return cannot("create the link", link, errno);
    return {};
}

Expected<void> copy_tree(const fs::path& source, const fs::path& target) {
    if (::mkdir(target.c_str(), 0755) != 0) return cannot("create the folder", target, errno);
    std::error_code error;
    auto entries = fs::directory_iterator(source, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
        const fs::path to = target / entries->path().filename();
        const auto type = entries->symlink_status(error).type();
        if (type == fs::file_type::symlink) {
            INFRARSI_TRY(make_symlink(fs::read_symlink(entries->path(), error), to));
        } else if (type == fs::file_type::directory) {
            INFRARSI_TRY(copy_tree(entries->path(), to));
        } else if (type == fs::file_type::regular) {
            INFRARSI_TRY(copy_source_file(entries->path(), to));
        }
    }
    if (error) return fail(ErrorKind::io, "cannot copy the folder {}: {}", source.string(), error.message());
    return {};
}

namespace {

Expected<void> unfold_link(const fs::path& link) {
    std::error_code error;
    const fs::path original = fs::canonical(link, error);
    if (error) return fail(ErrorKind::io, "cannot follow the link {}: {}", link.string(), error.message());
    if (::unlink(link.c_str()) != 0) return cannot("replace the link", link, errno);
    if (::mkdir(link.c_str(), 0755) != 0) return cannot("create the folder", link, errno);
    auto entries = fs::directory_iterator(original, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
        INFRARSI_TRY(make_symlink(entries->path(), link / entries->path().filename()));
    }
    if (error) return fail(ErrorKind::io, "cannot list the folder {}: {}", original.string(), error.message());
    return {};
}

}  // namespace

Expected<void> detach_path(const fs::path& tree, const std::string& path) {
    const fs::path relative(path);
    if (relative.is_absolute() || relative.lexically_normal().string().starts_with("..")) {
        return fail(ErrorKind::invalid_input, "the path {} leaves the project", path);
    }
    fs::path here = tree;
    for (const fs::path& part : relative.lexically_normal().parent_path()) {
        here /= part;
        struct stat info{};
        if (::lstat(here.c_str(), &info) != 0) {
            if (::mkdir(here.c_str(), 0755) != 0) return cannot("create the folder", here, errno);
        } else if (S_ISLNK(info.st_mode)) {
            INFRARSI_TRY(unfold_link(here));
        } else if (!S_ISDIR(info.st_mode)) {
            return fail(ErrorKind::conflict, "cannot write {}: {} is not a folder", path, here.string());
        }
    }
    const fs::path last = tree / relative;
    if (::unlink(last.c_str()) != 0 && errno != ENOENT) return cannot("replace", last, errno);
    return {};
}

FileStamp stamp_file(const fs::path& path, const FileStamp* before) {
    FileStamp stamp;
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
        stamp.digest = "missing";
        return stamp;
    }
    const auto nanoseconds = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
    stamp.device = info.st_dev;
    stamp.inode = info.st_ino;
    stamp.size = static_cast<std::uint64_t>(info.st_size);
    stamp.modified_ns = nanoseconds(info.st_mtim);
    stamp.changed_ns = nanoseconds(info.st_ctim);
    if (before && stamp.same_file_state(*before)) {
        stamp.digest = before->digest;
        return stamp;
    }
    const auto digest = sha256_file(path);
    stamp.digest = digest ? *digest : "unreadable";
    return stamp;
}

}  // namespace infrarsi
