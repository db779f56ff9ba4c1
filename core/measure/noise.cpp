#include "core/measure/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/measure/window.h"

namespace infrarsi {
namespace {

// Continued fraction of the incomplete beta function (modified Lentz), for x < (a + 1)/(a + b + 2).
double beta_fraction(double a, double b, double x) {
    constexpr double kTiny = 1e-300;
    const auto guard = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
    double c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= 500; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / guard(1 + even * d);
        c = guard(1 + even / c);
        value *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / guard(1 + odd * d);
        c = guard(1 + odd / c);
        value *= d * c;
        if (std::abs(d * c - 1) < 1e-15) {
            break;
        }
    }
    return value;
}

// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
    if (x <= 0) {
        return 0;
    }
    if (x >= 1) {
        return 1;
    }
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    if (x < (a + 1) / (a + b + 2)) {
        return front * beta_fraction(a, b, x) / a;
    }
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

struct Spread {
    double sigma = 0, degrees = 0;
};

// Runs of the reference, all of them: twice the variance of ln T̄ is the variance of a pair's difference. With two runs
// this is the one difference of notes/statistics.md §1.1; with more it wastes none of them, and drift between runs
// makes it larger, never smaller.
Spread spread_of_runs(const std::vector<double>& log_means) {
    if (log_means.size() < 2) {
        return {};
    }
    const auto count = static_cast<double>(log_means.size());
    double mean = 0, squares = 0;
    for (const double value : log_means) {
        mean += value / count;
    }
    for (const double value : log_means) {
        squares += (value - mean) * (value - mean);
    }
    return {std::sqrt(2 * squares / (count - 1)), count - 1};
}

void add_loss_noise(NoiseFloor& noise, const std::vector<Receipt>& references) {
    double squares = 0;
    int count = 0;
    for (std::size_t run = 1; run < references.size(); ++run) {
        std::map<int, double> before;
        for (const auto& update : references[run - 1].series) {
            if (update.loss) {
                before[update.n] = *update.loss;
            }
        }
        for (const auto& update : references[run].series) {
            const auto other = before.find(update.n);
            if (!update.loss || other == before.end()) {
                continue;
            }
            const double difference = *update.loss - other->second;
            if (!std::isfinite(difference)) {
                continue;
            }
            squares += difference * difference;
            ++count;
        }
    }
    if (count > 0) {
        noise.sigma_loss = std::sqrt(squares / count);
    }
}

}  // namespace

NoiseFloor estimate_noise(const std::vector<Receipt>& references) {
    NoiseFloor noise;
    noise.runs = static_cast<int>(references.size());
    std::vector<double> log_means;
    double split_squares = 0, white_squares = 0, white_degrees = 0, split_degrees = 0;
    for (const auto& reference : references) {
        const auto stats = window_stats(reference);
        if (!stats || stats->mean_s <= 0) {
            continue;
        }
        log_means.push_back(std::log(stats->mean_s));
        noise.drifting = noise.drifting || stats->drifting;
        if (stats->count < 4) {
            continue;
        }
        const double split = std::log(stats->first_half_s / stats->second_half_s);
        split_squares += split * split;
        split_degrees += 1;
        white_squares += 2 / stats->effective_count * stats->sigma_step * stats->sigma_step;
        white_degrees += stats->count - 1;
    }
    const auto pairs = spread_of_runs(log_means);
    noise.from_pairs = pairs.sigma;
    if (split_degrees > 0) {
        // Var of the halves' difference is 4σ²/k, that of a pair of full windows 2σ²/k.
        noise.from_split = std::sqrt(split_squares / split_degrees / 2);
        noise.from_white = std::sqrt(white_squares / split_degrees);
    }
    noise.sigma_pair = std::max({noise.from_pairs, noise.from_split, noise.from_white});
    if (noise.from_pairs >= noise.sigma_pair && pairs.degrees > 0) {
        noise.winner = "pairs";
        noise.degrees = pairs.degrees;
    } else if (noise.from_split >= noise.sigma_pair && split_degrees > 0) {
        noise.winner = "split-half";
        noise.degrees = split_degrees;
    } else {
        noise.winner = "white-noise";
        noise.degrees = std::max(1.0, white_degrees);
    }
    add_loss_noise(noise, references);
    return noise;
}

double student_cdf(double t, double degrees) {
    if (std::isnan(t)) {
        return t;
    }
    const double tail = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
    return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double degrees) {
    if (p == 0.5) {
        return 0;
    }
    if (p < 0.5) {
        return -student_quantile(1 - p, degrees);
    }
    double low = 0, high = 1;
    while (student_cdf(high, degrees) < p && high < 1e300) {
        high *= 2;
    }
    for (int step = 0; step < 200 && high - low > 1e-13 * high; ++step) {
        const double middle = low + (high - low) / 2;
        (student_cdf(middle, degrees) < p ? low : high) = middle;
    }
    return low + (high - low) / 2;
}

double search_gate(const NoiseFloor& noise) {
    return std::max(0.02, 2 * noise.sigma_pair);
}

namespace {

// Standard deviation of one block's gain and its degrees. A block of four runs has half the variance of a pair. Where
// the blocks scatter less than the floor, the floor counts, and the blocks' own degrees support it as well.
Spread spread_of_blocks(const std::vector<PairResult>& pairs, double mean, const NoiseFloor& noise) {
    const double floor = noise.sigma_pair / std::sqrt(2.0);
    const double own_degrees = static_cast<double>(pairs.size()) - 1;
    double squares = 0;
    for (const auto& pair : pairs) {
        squares += (pair.log_gain - mean) * (pair.log_gain - mean);
    }
    const double own = own_degrees > 0 ? std::sqrt(squares / own_degrees) : 0;
    if (own > floor) {
        return {own, own_degrees};
    }
    return {floor, std::max(1.0, noise.degrees) + own_degrees};
}

std::string percent(double log_gain) {
    return fmt::format("{:+.2f} %", 100 * std::expm1(log_gain));
}

}  // namespace

GainEstimate judge_pairs(const std::vector<PairResult>& pairs, const NoiseFloor& noise) {
    GainEstimate gain;
    gain.pairs = static_cast<int>(pairs.size());
    gain.margin = 2 * noise.sigma_pair;
    if (pairs.empty()) {
        gain.reason = "no pair of reference and candidate was run yet";
        return gain;
    }
    double median_gain = 0;
    for (const auto& pair : pairs) {
        gain.log_gain += pair.log_gain / gain.pairs;
        median_gain += pair.log_gain_median / gain.pairs;
    }
    if (!std::isfinite(gain.log_gain) || !std::isfinite(median_gain)) {
        gain.decision = Decision::reject;
        gain.reason = "a pair has no usable step times";
        return gain;
    }
    const auto spread = spread_of_blocks(pairs, gain.log_gain, noise);
    const double reach = student_quantile(0.95, spread.degrees) * spread.sigma / std::sqrt(gain.pairs);
    gain.low = gain.log_gain - reach;
    gain.high = gain.log_gain + reach;
    gain.speedup = std::exp(gain.log_gain);
    const auto interval =
        fmt::format("{} [{}, {}] from {} pair{}, margin {}", percent(gain.log_gain), percent(gain.low),
                    percent(gain.high), gain.pairs, gain.pairs == 1 ? "" : "s", percent(gain.margin));
    // A stall in few updates moves the mean and not the median: then the tails changed, and neither tells the gain.
    const double agreement = std::max({gain.margin, 0.1 * std::abs(gain.log_gain), 0.005});
    const bool agree = std::abs(gain.log_gain - median_gain) <= agreement;
    if (gain.high <= gain.margin) {
        gain.decision = Decision::reject;
        gain.reason = fmt::format("the gain does not exceed the noise: {}", interval);
    } else if (gain.low > gain.margin && agree && median_gain > gain.margin) {
        gain.decision = Decision::promote;
        gain.reason = fmt::format("the gain is clear of the noise: {}", interval);
    } else if (gain.low > gain.margin) {
        gain.reason = fmt::format("mean and median disagree ({} and {}): {}", percent(gain.log_gain),
                                  percent(median_gain), interval);
    } else {
        gain.reason = fmt::format("the interval is not clear of the margin: {}", interval);
    }
    return gain;
}

}  // namespace infrarsi
