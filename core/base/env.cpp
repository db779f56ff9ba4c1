#include "core/base/env.h"

#include <cmath>
#include <numbers>
#include <thread>

#include "core/base/error.h"

namespace infrarsi {

double SystemClock::wall_s() const {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::chrono::nanoseconds SystemClock::monotonic() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

void SystemClock::sleep_for(std::chrono::nanoseconds duration) {
    std::this_thread::sleep_for(duration);
}

double Random::uniform() {
    return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::size_t Random::below(std::size_t count) {
    INFRARSI_CHECK(count > 0, "a choice needs something to choose from");
    return static_cast<std::size_t>(uniform() * static_cast<double>(count));
}

double Random::normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace infrarsi
