#pragma once
// What the engine takes from the world, as parameters: time and randomness. A campaign is replayed exactly from its
// seed and its journal because nothing below `main` reads a clock or a random device by itself (STYLE, No globals).

#include <chrono>
#include <cstdint>
#include <random>

namespace infrarsi {

class Clock {
public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual double wall_s() const = 0;                       // seconds since the epoch
    [[nodiscard]] virtual std::chrono::nanoseconds monotonic() const = 0;  // since an arbitrary start
    virtual void sleep_for(std::chrono::nanoseconds duration) = 0;
};

class SystemClock final : public Clock {
public:
    [[nodiscard]] double wall_s() const override;
    [[nodiscard]] std::chrono::nanoseconds monotonic() const override;
    void sleep_for(std::chrono::nanoseconds duration) override;
};

// Seeded and portable: the same numbers on every platform (std distributions are not).
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    [[nodiscard]] std::uint64_t next() { return engine_(); }
    [[nodiscard]] double uniform();                      // [0, 1)
    [[nodiscard]] std::size_t below(std::size_t count);  // 0 … count − 1; count ≥ 1
    [[nodiscard]] double normal();                       // mean 0, sd 1

private:
    std::mt19937_64 engine_;
};

}  // namespace infrarsi
