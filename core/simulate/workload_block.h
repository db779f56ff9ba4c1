#pragma once
// One mapping of a workload file while it is read: a line for each key, required or with a default. Internal to the
// reader (read_workload.cpp, read_levers.cpp).

#include <limits>

#include "core/contract/yaml_reader.h"
#include "core/simulate/workload.h"

namespace infrarsi::sim {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr NumberRange kAnyNumber{-kInfinity, kInfinity};
inline constexpr NumberRange kNotNegative{0, kInfinity};
inline constexpr NumberRange kPositive{0, kInfinity, false};
inline constexpr NumberRange kZeroToOne{0, 1};

class Block {
public:
    // A `field` that is missing or no mapping has been reported; then every key gives its fallback in silence.
    Block(Problems& problems, const Field& field, std::vector<std::string> known)
        : problems_(problems),
          field_(field),
          map_(problems, field, std::move(known)),
          is_map_(field && field.node->kind == YamlNode::Kind::map) {}

    // The keys of the file itself have no path before them.
    [[nodiscard]] static Block top(Problems& problems, const YamlNode& root, std::vector<std::string> known) {
        return {problems, {&root, std::string(kFile)}, std::move(known)};
    }

    [[nodiscard]] Field optional(const std::string& key) const;
    [[nodiscard]] Field required(const std::string& key) const;  // reports what is missing

    [[nodiscard]] std::optional<double> read(const std::string& key, const NumberRange& range) const;  // required
    [[nodiscard]] double number(const std::string& key, const NumberRange& range) const;
    [[nodiscard]] double number_or(const std::string& key, const NumberRange& range, double fallback) const;
    [[nodiscard]] std::int64_t whole(const std::string& key, std::int64_t low, std::int64_t high) const;
    [[nodiscard]] std::int64_t whole_or(const std::string& key, std::int64_t low, std::int64_t high,
                                        std::int64_t fallback) const;
    [[nodiscard]] bool flag_or(const std::string& key, bool fallback) const;
    [[nodiscard]] std::string text(const std::string& key) const;
    [[nodiscard]] std::string text_or(const std::string& key, std::string fallback) const;
    [[nodiscard]] std::optional<std::string> mechanism() const;
    // A name that keys and digests are made of: no blanks, no `,`, `;`, `|` or `=`.
    [[nodiscard]] std::string name(const std::string& key) const;
    // [low, high], low ≤ high, both within `range`.
    [[nodiscard]] std::pair<double, double> interval(const std::string& key, const NumberRange& range) const;
    // Free keys → numbers.
    [[nodiscard]] std::map<std::string, double> numbers(const Field& field, const NumberRange& range) const;
    // Long names → factors; a phase that is not named has factor 1.
    [[nodiscard]] PerPhase factors(const std::string& key) const;

    [[nodiscard]] Problems& problems() const { return problems_; }
    [[nodiscard]] const YamlNode& place() const { return *field_.node; }
    [[nodiscard]] const std::string& path() const { return field_.path; }
    [[nodiscard]] explicit operator bool() const { return is_map_; }

private:
    static constexpr std::string_view kFile = "the workload";

    [[nodiscard]] std::optional<double> finite(const Field& field, const NumberRange& range) const;

    Problems& problems_;
    Field field_;
    MapReader map_;
    bool is_map_ = false;
};

// The part of the file that settings and patches come from; the rest needs it for its conditions.
void read_knobs(const Block& file, Workload& workload);
void read_patches(const Block& file, Workload& workload);
void read_interactions(const Block& file, Workload& workload);
void read_conflicts(const Block& file, Workload& workload);

// `{knob: value, …}`, each reported where it names no knob or no value of it.
[[nodiscard]] Condition read_condition(Problems& problems, const Field& field, const Workload& workload);

}  // namespace infrarsi::sim
