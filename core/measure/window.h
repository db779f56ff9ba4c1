#pragma once
// Step-time statistics of one run (DESIGN §7.2, notes/statistics.md §1). The window is updates warmup+1 … updates; the
// time of an update is the difference of its arrival and that of the update before. Disturbed updates (the harness's
// own checks) are left out of both arms.

#include <optional>
#include <vector>

#include "core/trial/receipt.h"

namespace infrarsi {

struct WindowStats {
    int count = 0;      // updates used
    double mean_s = 0;  // window mean step time: the score
    double median_s = 0;
    double first_half_s = 0, second_half_s = 0;  // means
    double sigma_step = 0;                  // robust scale of ln step time after removing a running median (1.4826·MAD)
    double autocorrelation = 0;             // lag 1
    double effective_count = 0;             // count · (1−φ)/(1+φ), at least 1, at most count
    bool drifting = false;                  // block means and the white-noise value disagree by more than a factor 2
    std::optional<double> reported_mean_s;  // of the step times that the job's own log states
    std::optional<double> loss_mean;
    PhaseTimes phases;  // mean seconds an update
    bool has_phases = false;
};

// Step times in seconds of the window's undisturbed updates, in order. Empty when the run has fewer than two updates.
[[nodiscard]] std::vector<double> window_step_times(const Receipt& receipt);

// Nothing when the window has no complete update.
[[nodiscard]] std::optional<WindowStats> window_stats(const Receipt& receipt);

}  // namespace infrarsi
