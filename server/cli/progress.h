#pragma once
// How a campaign is shown: one live line on a terminal, plain lines elsewhere. Everything also goes to run.log.

#include <cstdio>
#include <memory>

#include "core/campaign/observer.h"

namespace infrarsi {

enum class ProgressStyle { live, plain };

struct ProgressBudget {
    std::optional<int> screens;
    std::optional<double> wallclock_s;
};

// Writes to `stream` (standard error). `clock` gives the elapsed time; both must outlive the observer.
[[nodiscard]] std::unique_ptr<CampaignObserver> make_progress(ProgressStyle style, bool verbose, std::FILE* stream,
                                                              Clock& clock, ProgressBudget budget);

// "3 m 05 s", "1 h 02 m", "42 s".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace infrarsi
