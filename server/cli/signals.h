#pragma once
// SIGINT, SIGTERM and SIGHUP as requests to stop, for commands that run trials. They are blocked in every thread and
// read by one; a third ends the process where it stands.

#include <memory>

#include "core/campaign/interrupts.h"

namespace infrarsi {

class SignalWatch {
public:
    // Must be made before any other thread. `interrupts` must outlive it.
    explicit SignalWatch(Interrupts& interrupts);
    ~SignalWatch();
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace infrarsi
