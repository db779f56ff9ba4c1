#pragma once
// Levers: every place on the launch line, in a config file or in the environment that could become a knob, with what it
// is at today. Part of init.

#include "core/campaign/draft_knobs.h"

namespace infrarsi {

struct Lever {
    KnobKind kind = KnobKind::flag;
    std::string spelling;
    FlagForm form = FlagForm::value;
    std::string label;         // a name for the knob, in snake case
    std::string mechanism;     // canonical id
    std::optional<Value> now;  // what the job uses; nothing when that cannot be read
    bool is_bool = false;
    std::vector<Value> choices;
    std::string place;  // "train.sh:32 passes 2", "the default in train.py:38 is 0"
};

// In the order of the launch line's options, then config keys; levers of one mechanism may occur twice.
[[nodiscard]] std::vector<Lever> find_levers(const KnobSources& sources, Stack stack);

// The job's number of optimizer updates, and where it is written.
struct UpdateCount {
    std::int64_t count = 0;
    std::string spelling;
};
[[nodiscard]] std::optional<UpdateCount> find_update_count(const KnobSources& sources);

}  // namespace infrarsi
