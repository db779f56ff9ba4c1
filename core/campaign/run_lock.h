#pragma once
// One runner per repository (DESIGN §4). The lock is held through the kernel (flock), so it cannot outlive its owner;
// the file's text says who holds it.

#include <filesystem>
#include <string>

#include "core/base/expected.h"
#include "core/base/owned_fd.h"

namespace infrarsi {

// Move-only: the destructor gives the lock back.
class RunLock {
public:
    // conflict names the owner (pid, run). A lock file whose owner died is taken over silently.
    [[nodiscard]] static Expected<RunLock> acquire(const std::filesystem::path& lock_file, const std::string& run_id);
    // The lock of the project at `root`, wherever its runs are kept: <root>/.infrarsi/lock or, where the project cannot
    // be written to, <runs_dir>/lock. Makes `runs_dir`. As acquire; io or resource when nothing can be written.
    [[nodiscard]] static Expected<RunLock> of_project(const std::filesystem::path& root,
                                                      const std::filesystem::path& runs_dir, const std::string& run_id);
    RunLock(RunLock&& other) noexcept = default;
    RunLock& operator=(RunLock&& other) noexcept;
    ~RunLock();

private:
    explicit RunLock(OwnedFd fd) : fd_(std::move(fd)) {}
    void empty_file() const;
    OwnedFd fd_;
};

}  // namespace infrarsi
