#include "server/cli/signals.h"

#include <unistd.h>

#include <csignal>
#include <thread>

#include "server/cli/exit_codes.h"
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
    impl_->thread = std::jthread([&interrupts, signals = impl_->signals](const std::stop_token& stop) {
        int count = 0;
        while (!stop.stop_requested()) {
            const timespec wait{0, 100'000'000};
            if (sigtimedwait(&signals, nullptr, &wait) < 0) continue;
            ++count;
            interrupts.request();
            if (count == 1 && interrupts.policy() == Interrupts::Policy::verify) {
                print_err(
                    "\nStopping the running trial. The best so far is re-verified next; once more ends at once.\n");
            } else if (count <= 2) {
                print_err("\nEnding at once.\n");
            } else {
                // Something does not answer, a dead network disk perhaps. The journal needs no farewell.
                print_err("\nLeaving without tidying up; `infrarsi run --resume` goes on from here.\n");
                ::_exit(exit_code_of(ErrorKind::cancelled));
            }
        }
    });
}

SignalWatch::~SignalWatch() = default;

}  // namespace infrarsi
