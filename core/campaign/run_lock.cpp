#include "core/campaign/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/files.h"

namespace infrarsi {

Expected<RunLock> RunLock::acquire(const std::filesystem::path& lock_file, const std::string& run_id) {
    INFRARSI_TRY(make_folders(lock_file.parent_path()));
    const int fd = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return fail(ErrorKind::io, "cannot open the lock {}: {}", lock_file.string(), errno_text(errno));
    RunLock lock(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        if (error != EWOULDBLOCK) {
            return fail(ErrorKind::io, "cannot lock {}: {}", lock_file.string(), errno_text(error));
        }
        auto owner = read_file(lock_file);
        std::string text = owner && !owner->empty() ? *owner : "another infrarsi";
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return fail(ErrorKind::conflict,
                    "this repository is being worked on by {}: wait for it, or stop it with Ctrl-C there", text);
    }
    const std::string text = fmt::format("infrarsi process {} (run {})\n", ::getpid(), run_id);
    if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        return fail(ErrorKind::io, "cannot write the lock {}: {}", lock_file.string(), errno_text(errno));
    }
    return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

RunLock::~RunLock() {
    if (fd_ < 0) return;
    [[maybe_unused]] const int emptied = ::ftruncate(fd_, 0);  // only text; the lock itself is the kernel's
    ::close(fd_);
}

}  // namespace infrarsi
