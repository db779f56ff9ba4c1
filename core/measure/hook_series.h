#pragma once
// The hook's messages of all ranks (adapters/README.md), merged into one series: tokens and samples are added, data
// digests are added modulo 2⁶⁴, losses are averaged, and an update arrives when its last rank reported it.

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <memory>
#include <vector>

#include "core/trial/receipt.h"

namespace infrarsi {

// What the knobs hold, as the lowest rank saw them.
struct KnobMessage {
    std::map<std::string, Value> args, globals, env;
    std::optional<std::int64_t> threads, workers, compiled_frames;
};

struct HookSeries {
    int world = 0;  // ranks that reported, or that a rank said there are
    std::vector<UpdateRecord> series;
    std::string model_digest;  // of the lowest rank; of all ranks together where they hold different parts
    std::optional<std::int64_t> trainable_params;
    std::map<std::string, std::int64_t> param_dtypes;
    std::vector<StateProbe> probes;
    std::optional<DtypeAudit> audit;
    std::optional<KnobMessage> knobs;
    std::vector<int> disturbed;  // ascending: updates whose interval holds a state or audit question
};

// An update counts once each rank has reported it. corrupt with the line, io. A missing file is an empty series.
[[nodiscard]] Expected<HookSeries> read_hook_series(const std::filesystem::path& path);

}  // namespace infrarsi
