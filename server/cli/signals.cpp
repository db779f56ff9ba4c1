#include "server/cli/signals.h"

#include <csignal>
#include <thread>

#include "server/cli/output.h"

namespace infrarsi {

struct SignalWatch::Impl {
    sigset_t signals{};
    std::jthread thread;
};

SignalWatch::SignalWatch(Interrupts& interrupts) : impl_(std::make_unique<Impl>()) {
    sigemptyset(&impl_->signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&impl_->signals, number);
    pthread_sigmask(SIG_BLOCK, &impl_->signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    impl_->thread = std::jthread([&interrupts, signals = impl_->signals](const std::stop_token& stop) {
        int count = 0;
        while (!stop.stop_requested()) {
            const timespec wait{0, 100'000'000};
            if (sigtimedwait(&signals, nullptr, &wait) < 0) continue;
            ++count;
            interrupts.request();
            print_err(
                count == 1
                    ? "\nStopping the running trial. The best so far is re-verified next; once more ends at once.\n"
                    : "\nEnding at once.\n");
        }
    });
}

SignalWatch::~SignalWatch() = default;

}  // namespace infrarsi
