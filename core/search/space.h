#pragma once
// The space that the search walks: axes (knobs) with their values, and ideas for patches, as small integers. What the
// search knows of a setting before anything is measured comes with it. A contract, a simulated workload or anything
// else that has knobs is turned into a Space once; the search itself never sees a name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace infrarsi {

// The phases of an update that a lever works on, a set of bits; all of them where nobody knows.
enum OperatorPhase : unsigned {
    kMatmul = 1U,
    kAttention = 2U,
    kElementwise = 4U,
    kRecompute = 8U,
    kCommunication = 16U,
    kOptimizerStep = 32U,
    kHost = 64U,
    kDataLoading = 128U,
    kEveryPhase = 255U
};

// A part of the reference's step time, and the phases that it is made of: the eight of a profiler, or the coarser ones
// of the hook (forward and backward are several at once). Shares sum to 1.
struct PhaseGroup {
    unsigned phases = kEveryPhase;
    double share = 1;
};

// What is believed of one value of an axis, or of a patch, against the reference.
struct LeverPrior {
    unsigned phases = kEveryPhase;
    double gain = 0;                // log speed-up, from the rules of its mechanism
    std::optional<double> told;     // log speed-up as a language model or a pack says; trusted only as far as it proves
    double gib = 0, gib_sigma = 1;  // of peak memory per device
};

struct Axis {
    std::string name;
    std::vector<std::string> labels;  // of the values, for reasons in words
    std::vector<LeverPrior> priors;   // one a value; the reference's is not read
    std::vector<bool> legal;          // false: never proposed
    int reference = 0;
    bool is_ordered = false;          // the values are an axis, in order
    bool scales_activations = false;  // multiplies with the other such axes in memory (micro-batch, recomputation)
};

struct PatchIdea {
    std::string name;
    LeverPrior prior;
};

struct Space {
    std::vector<Axis> axes;
    std::vector<PatchIdea> patches;
    std::vector<PhaseGroup> phases{{}};
    double reference_gib = 0;  // peak of the reference
    double capacity_gib = 0;   // 0: unknown, everything fits
    double gate = 0.02;        // g: what a gain must clear, log units
    double sigma = 0.01;       // of a pair of runs, log units
};

// One candidate: a value for each axis, and which patches are in.
struct Point {
    std::vector<std::uint8_t> values;
    std::vector<std::uint8_t> patches;  // 0 or 1

    bool operator==(const Point&) const = default;
    auto operator<=>(const Point&) const = default;
};

struct PointHash {
    std::size_t operator()(const Point& point) const {
        std::uint64_t hash = 0xcbf29ce484222325ULL;
        for (const auto* bytes : {&point.values, &point.patches}) {
            for (const std::uint8_t byte : *bytes) hash = (hash ^ byte) * 0x100000001b3ULL;
        }
        return hash;
    }
};

[[nodiscard]] Point reference_point(const Space& space);
// Axes on which the two differ.
[[nodiscard]] int distance(const Point& a, const Point& b);
// "compile=true recompute=none + fused_rope", against the reference; "the reference".
[[nodiscard]] std::string describe(const Space& space, const Point& point);

}  // namespace infrarsi
