#include "core/measure/window.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace infrarsi {
namespace {

double mean_of(const std::vector<double>& values, std::size_t from, std::size_t to) {
    if (to <= from) {
        return 0;
    }
    return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from),
                           values.begin() + static_cast<std::ptrdiff_t>(to), 0.0) /
           static_cast<double>(to - from);
}

double median_of(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// ln T with a running median of nine removed: what is left is noise, not a trend.
std::vector<double> detrended_logs(const std::vector<double>& times) {
    constexpr std::ptrdiff_t kReach = 4;
    std::vector<double> logs;
    for (const double time : times) {
        logs.push_back(std::log(time));
    }
    std::vector<double> residuals;
    const auto size = static_cast<std::ptrdiff_t>(logs.size());
    for (std::ptrdiff_t i = 0; i < size; ++i) {
        const auto from = std::max<std::ptrdiff_t>(0, i - kReach), to = std::min(size, i + kReach + 1);
        residuals.push_back(logs[static_cast<std::size_t>(i)] -
                            median_of(std::vector<double>(logs.begin() + from, logs.begin() + to)));
    }
    return residuals;
}

double robust_scale(const std::vector<double>& values) {
    const double centre = median_of(values);
    std::vector<double> deviations;
    for (const double value : values) {
        deviations.push_back(std::abs(value - centre));
    }
    return 1.4826 * median_of(std::move(deviations));
}

double lag_one(const std::vector<double>& times) {
    std::vector<double> logs;
    for (const double time : times) {
        logs.push_back(std::log(time));
    }
    const double mean = mean_of(logs, 0, logs.size());
    double products = 0, squares = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
        squares += (logs[i] - mean) * (logs[i] - mean);
        if (i > 0) {
            products += (logs[i] - mean) * (logs[i - 1] - mean);
        }
    }
    return squares > 0 ? products / squares : 0;
}

// Blocks of about √k updates: were the updates independent, the block means would scatter as √(1/length) of them. A
// factor of 2 beyond that (and beyond what few blocks scatter by chance) is drift or long correlation (notes §1.5).
bool blocks_disagree(const std::vector<double>& times, double sigma_step) {
    const auto length = static_cast<std::size_t>(std::sqrt(static_cast<double>(times.size())));
    if (length < 3) {
        return false;
    }
    std::vector<double> means;
    for (std::size_t at = 0; at + length <= times.size(); at += length) {
        means.push_back(std::log(mean_of(times, at, at + length)));
    }
    const double centre = mean_of(means, 0, means.size());
    double squares = 0;
    for (const double mean : means) {
        squares += (mean - centre) * (mean - centre);
    }
    const double scatter = std::sqrt(squares / static_cast<double>(means.size() - 1));
    const double chance = 1 + 2 / std::sqrt(2.0 * static_cast<double>(means.size() - 1));
    // A smooth trend leaves no noise at all beside the running median, but still moves the blocks.
    const double expected = std::max(sigma_step, 1e-6) / std::sqrt(static_cast<double>(length));
    return scatter > std::max(2.0, chance) * expected;
}

bool in_window(const Receipt& receipt, int n) {
    return n > receipt.warmup && n <= receipt.updates;
}

void add_phases(WindowStats& stats, const Receipt& receipt) {
    int count = 0;
    for (const auto& update : receipt.series) {
        if (!in_window(receipt, update.n) || !update.phases) {
            continue;
        }
        stats.phases.forward += update.phases->forward;
        stats.phases.backward += update.phases->backward;
        stats.phases.optimizer += update.phases->optimizer;
        stats.phases.data += update.phases->data;
        stats.phases.other += update.phases->other;
        ++count;
    }
    if (count == 0) {
        return;
    }
    stats.has_phases = true;
    for (double* phase : {&stats.phases.forward, &stats.phases.backward, &stats.phases.optimizer, &stats.phases.data,
                          &stats.phases.other}) {
        *phase /= count;
    }
}

template <class Field>
std::optional<double> window_mean(const Receipt& receipt, Field field) {
    double sum = 0;
    int count = 0;
    for (const auto& update : receipt.series) {
        if (const auto& value = update.*field; value && in_window(receipt, update.n)) {
            sum += *value;
            ++count;
        }
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

std::vector<double> window_step_times(const Receipt& receipt) {
    const std::set<int> disturbed(receipt.disturbed.begin(), receipt.disturbed.end());
    std::vector<double> times;
    for (std::size_t i = 1; i < receipt.series.size(); ++i) {
        const auto& before = receipt.series[i - 1];
        const auto& update = receipt.series[i];
        if (!in_window(receipt, update.n) || update.n != before.n + 1 || disturbed.contains(update.n)) {
            continue;
        }
        const double time = update.t_s - before.t_s;
        // Non-positive differences have no logarithm; the verifier fails such a run (timing_consistent).
        if (std::isfinite(time) && time > 0) {
            times.push_back(time);
        }
    }
    return times;
}

std::optional<WindowStats> window_stats(const Receipt& receipt) {
    const auto times = window_step_times(receipt);
    if (times.empty()) {
        return std::nullopt;
    }
    WindowStats stats;
    stats.count = static_cast<int>(times.size());
    stats.mean_s = mean_of(times, 0, times.size());
    stats.median_s = median_of(times);
    const auto half = times.size() / 2;
    stats.first_half_s = half > 0 ? mean_of(times, 0, half) : stats.mean_s;
    stats.second_half_s = mean_of(times, half, times.size());
    stats.sigma_step = robust_scale(detrended_logs(times));
    stats.autocorrelation = lag_one(times);
    // Only positive correlation costs information; a negative estimate from few updates must not invent some.
    const double phi = std::clamp(stats.autocorrelation, 0.0, 0.99);
    stats.effective_count = std::clamp(stats.count * (1 - phi) / (1 + phi), 1.0, static_cast<double>(stats.count));
    stats.drifting = blocks_disagree(times, stats.sigma_step);
    stats.reported_mean_s = window_mean(receipt, &UpdateRecord::reported_s);
    stats.loss_mean = window_mean(receipt, &UpdateRecord::loss);
    add_phases(stats, receipt);
    return stats;
}

}  // namespace infrarsi
