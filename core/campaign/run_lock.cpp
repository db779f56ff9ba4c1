#include "core/campaign/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/files.h"
#include "core/exec/process.h"

namespace infrarsi {

Expected<RunLock> RunLock::acquire(const std::filesystem::path& lock_file, const std::string& run_id) {
    INFRARSI_TRY(make_folders(lock_file.parent_path()));
    OwnedFd fd(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd.is_open()) return fail(ErrorKind::io, "cannot open the lock {}: {}", lock_file.string(), errno_text(errno));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
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
    // From here on the lock is ours, so its text is ours to empty.
    RunLock lock(std::move(fd));
    const std::string text = fmt::format("infrarsi process {} (run {})\n", this_process().pid, run_id);
    const int file = lock.fd_.get();
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        return fail(ErrorKind::io, "cannot write the lock {}: {}", lock_file.string(), errno_text(errno));
    }
    return lock;
}

Expected<RunLock> RunLock::of_project(const std::filesystem::path& root, const std::filesystem::path& runs_dir,
                                      const std::string& run_id) {
    if (auto made = make_folders(runs_dir); !made) {
        return fail(made.error().kind(), "{}; give a folder that can be written with --out", made.error().message());
    }
    const std::filesystem::path own = root / ".infrarsi";
    auto lock = acquire(own / "lock", run_id);
    if (!lock) {
        if (lock.error().kind() == ErrorKind::conflict) return lock;
        return acquire(runs_dir / "lock", run_id);
    }
    // What this program keeps here is no part of the repository.
    std::error_code ignored;
    if (!std::filesystem::exists(own / ".gitignore", ignored)) {
        [[maybe_unused]] auto written = write_file(own / ".gitignore", "*\n");
    }
    return lock;
}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
    if (this != &other) {
        empty_file();
        fd_ = std::move(other.fd_);
    }
    return *this;
}

RunLock::~RunLock() {
    empty_file();
}

void RunLock::empty_file() const {
    // Only text; the lock itself is the kernel's, and goes with the descriptor.
    if (fd_.is_open()) [[maybe_unused]]
        const int emptied = ::ftruncate(fd_.get(), 0);
}

}  // namespace infrarsi
