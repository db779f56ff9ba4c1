#pragma once
// The random numbers of the simulated job: streams that are named, not shared, so that an answer depends on its name
// alone and never on what was asked before it. SplitMix64 seeded by SHA-256, normals by inversion (one uniform each):
// few lines in any language, and equal to the last bit but for the logarithm. Source: SIMULATOR.md §5.1, §13.

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace infrarsi::sim {

class RandomStream {
public:
    // The stream named `infrarsi-sim-v1|` and the parts joined by `|`. One SHA-256, about a microsecond.
    explicit RandomStream(std::initializer_list<std::string_view> parts);

    [[nodiscard]] std::uint64_t next();
    // Strictly between 0 and 1, a multiple of 2^-53.
    [[nodiscard]] double uniform();
    [[nodiscard]] double normal();

    [[nodiscard]] std::uint64_t state() const { return state_; }

private:
    std::uint64_t state_ = 0;
};

// Φ⁻¹(p) for p in (0, 1), to about 1e-16 relative (Wichura 1988, AS 241, PPND16).
[[nodiscard]] double normal_quantile(double p);

}  // namespace infrarsi::sim
