#include "core/bench/bench_summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace infrarsi::bench {

namespace {

constexpr int kResamples = 2000;
constexpr std::uint64_t kResampleSeed = 20240229;
constexpr double kInterval = 0.95;

// The scores of one strategy on one workload, by seed.
struct Cell {
    const CampaignScore* first = nullptr;
    std::size_t count = 0;

    [[nodiscard]] const CampaignScore* begin() const { return first; }
    [[nodiscard]] const CampaignScore* end() const { return first + count; }
    template <class Of>
    [[nodiscard]] double mean(const Of& of) const {
        double sum = 0;
        for (const CampaignScore& score : *this) sum += of(score);
        return sum / static_cast<double>(count);
    }
};

std::vector<Cell> cells_of(const std::vector<CampaignScore>& scores) {
    std::vector<Cell> cells;
    for (const CampaignScore& score : scores) {
        const bool continues = !cells.empty() && cells.back().first->workload == score.workload &&
                               cells.back().first->strategy == score.strategy;
        if (!continues) cells.push_back({&score, 0});
        ++cells.back().count;
    }
    return cells;
}

double log_speedup(const CampaignScore& score) {
    return std::log(score.true_speedup);
}

// Seeds are drawn anew, each with both strategies' results.
void add_difference(const Cell& cell, const Cell& base, CellSummary& summary) {
    INFRARSI_CHECK(cell.count == base.count, "strategies are compared on the same seeds");
    std::vector<double> differences;
    for (std::size_t i = 0; i < cell.count; ++i) {
        INFRARSI_CHECK(cell.first[i].seed == base.first[i].seed, "strategies are compared on the same seeds");
        differences.push_back(log_speedup(cell.first[i]) - log_speedup(base.first[i]));
    }
    Random luck(kResampleSeed);
    std::vector<double> means;
    for (int resample = 0; resample < kResamples; ++resample) {
        double sum = 0;
        for (std::size_t i = 0; i < differences.size(); ++i) sum += differences[luck.below(differences.size())];
        means.push_back(sum / static_cast<double>(differences.size()));
    }
    std::sort(means.begin(), means.end());
    double sum = 0;
    for (const double difference : differences) sum += difference;
    summary.difference = sum / static_cast<double>(differences.size());
    summary.difference_low = quantile_of_sorted(means, (1 - kInterval) / 2);
    summary.difference_high = quantile_of_sorted(means, (1 + kInterval) / 2);
}

CellSummary summarise_cell(const Cell& cell) {
    CellSummary summary;
    summary.workload = cell.first->workload;
    summary.strategy = cell.first->strategy;
    summary.seeds = static_cast<int>(cell.count);
    std::vector<double> speedups, costs;
    for (const CampaignScore& score : cell) {
        speedups.push_back(score.true_speedup);
        costs.push_back(score.cost_to_90.value_or(HUGE_VAL));
    }
    std::sort(speedups.begin(), speedups.end());
    std::sort(costs.begin(), costs.end());
    summary.median = quantile_of_sorted(speedups, 0.5);
    summary.p10 = quantile_of_sorted(speedups, 0.1);
    summary.p90 = quantile_of_sorted(speedups, 0.9);
    summary.mean_ln = cell.mean(log_speedup);
    summary.share_to_90 = cell.mean([](const CampaignScore& score) { return score.cost_to_90 ? 1.0 : 0.0; });
    if (const double cost = quantile_of_sorted(costs, 0.5); std::isfinite(cost)) summary.median_cost_to_90 = cost;
    summary.invalid_share = cell.mean([](const CampaignScore& score) { return score.valid ? 0.0 : 1.0; });
    summary.mean_trials = cell.mean([](const CampaignScore& score) { return score.trials; });
    summary.mean_cost_units = cell.mean([](const CampaignScore& score) { return score.cost_units; });
    summary.mean_controller_s = cell.mean([](const CampaignScore& score) { return score.controller_s; });
    return summary;
}

nlohmann::json number_or_null(const std::optional<double>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

std::string render_row(const CellSummary& cell) {
    const std::string cost = cell.median_cost_to_90 ? fmt::format("{:.1f}", *cell.median_cost_to_90) : "never";
    const std::string difference = cell.difference ? fmt::format("{:+.3f} [{:+.3f}, {:+.3f}]", *cell.difference,
                                                                 *cell.difference_low, *cell.difference_high)
                                                   : "";
    return fmt::format(
        "  {:<22} {:>6.2f} [{:.2f}, {:.2f}] {:>7.3f} {:>7.0f} % {:>7} {:>7.0f} % {:>7.1f} {:>8.1f}  {}\n",
        cell.strategy, cell.median, cell.p10, cell.p90, cell.mean_ln, 100 * cell.share_to_90, cost,
        100 * cell.invalid_share, cell.mean_trials, 1000 * cell.mean_controller_s, difference);
}

}  // namespace

double quantile_of_sorted(const std::vector<double>& sorted, double p) {
    INFRARSI_CHECK(!sorted.empty(), "a quantile needs a value");
    const double position = p * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(position);
    const double part = position - static_cast<double>(low);
    // Without the product, infinity times zero would be no number.
    return part > 0 ? sorted[low] * (1 - part) + sorted[low + 1] * part : sorted[low];
}

std::vector<CellSummary> summarise(const std::vector<CampaignScore>& scores) {
    std::vector<CellSummary> summaries;
    const Cell* base = nullptr;
    const std::vector<Cell> cells = cells_of(scores);
    for (const Cell& cell : cells) {
        summaries.push_back(summarise_cell(cell));
        if (base == nullptr || base->first->workload != cell.first->workload) {
            base = &cell;
        } else {
            add_difference(cell, *base, summaries.back());
        }
    }
    return summaries;
}

nlohmann::json to_json(const CellSummary& cell) {
    return {{"workload", cell.workload},
            {"strategy", cell.strategy},
            {"seeds", cell.seeds},
            {"median", cell.median},
            {"p10", cell.p10},
            {"p90", cell.p90},
            {"mean_ln", cell.mean_ln},
            {"share_to_90", cell.share_to_90},
            {"median_cost_to_90", number_or_null(cell.median_cost_to_90)},
            {"invalid_share", cell.invalid_share},
            {"mean_trials", cell.mean_trials},
            {"mean_cost_units", cell.mean_cost_units},
            {"mean_controller_s", cell.mean_controller_s},
            {"difference", number_or_null(cell.difference)},
            {"difference_low", number_or_null(cell.difference_low)},
            {"difference_high", number_or_null(cell.difference_high)}};
}

std::string render_table(const std::vector<CellSummary>& summaries) {
    std::string text;
    std::string_view workload;
    for (const CellSummary& cell : summaries) {
        if (cell.workload != workload) {
            text += fmt::format("{}{}, {} seeds\n  {:<22} {:>6} [10 %, 90 %] {:>7} {:>9} {:>7} {:>9} {:>7} {:>8}  {}\n",
                                text.empty() ? "" : "\n", cell.workload, cell.seeds, "strategy", "median", "mean ln",
                                "to 90 %", "at cost", "invalid", "trials", "own ms", "mean ln less the first's");
            workload = cell.workload;
        }
        text += render_row(cell);
    }
    return text;
}

}  // namespace infrarsi::bench
