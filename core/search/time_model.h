#pragma once
// The time surrogate over phases: t(a) = Σ_g share_g · exp(−Σ_levers r_{lever,g}), y = −ln t. Each lever has one
// unknown reduction r per phase that it touches, so levers on the same phase are worth less together than apart, levers
// on different phases more, and none more than its phases' share (Amdahl). With one phase of share 1, that is without a
// profile, it is exactly the linear model of paper §4.1. The posterior is Gaussian around the MAP: Gauss–Newton on the
// normal equations, each step in closed form by Cholesky. What outsiders foretell enters through a random slope, so
// that the data can say that their predictions are worthless as a whole (notes on statistics §9).

#include <vector>

#include "core/search/cholesky.h"
#include "core/search/space.h"

namespace infrarsi {

struct TimeEvidence {
    Point point;
    double y = 0;      // ln(T_ref / T)
    double sigma = 0;  // its standard error, > 0
};

struct TimeRules {
    double common_sd = 0.25;    // of a lever's reduction, in all its phases alike
    double own_sd = 0.2;        // and in each by itself
    double step_sd = 0.15;      // per step along an ordered axis, shared by its values
    double enabling_sd = 0.15;  // of a patch together with one of the largest levers
    double told_mean = 0.35;    // κ0: slope on what outsiders foretell
    double told_sd = 0.5;
    double misfit = 0.004;  // per square root of changes: the model is not the machine
    int enablers = 4;       // levers that patches may depend on
};

class TimeModel {
public:
    TimeModel(const Space& space, const std::vector<TimeEvidence>& evidence, const TimeRules& rules = {});

    // y of a point and the gradient in the parameters at the MAP; sd of a difference by its gradient's difference.
    struct Prediction {
        double y = 0;
        SparseRow gradient;
    };
    [[nodiscard]] Prediction predict(const Point& point) const;
    // Σ (g_i − g'_i)… : √(dᵀ H⁻¹ d) for d = a − b.
    [[nodiscard]] double sd(const SparseRow& a, const SparseRow& b) const;

    // Log gain of one value, or patch, alone on the reference, and its sd.
    struct Lever {
        double gain = 0, sd = 0;
    };
    [[nodiscard]] Lever lever(int axis, int value) const;
    [[nodiscard]] Lever patch(int index) const;
    // The slope on what outsiders foretold: 1 where they are right, 0 where they know nothing.
    [[nodiscard]] double trust() const { return theta_[static_cast<std::size_t>(told_)]; }

private:
    struct Use {  // one parameter's part in a group's exponent
        int parameter = 0;
        double weight = 1;
    };
    using Uses = std::vector<std::vector<Use>>;  // per group

    int add(double mean, double sd);
    Uses make_lever(const LeverPrior& prior, int steps, int step_parameter);
    void add_enablers();
    void fit(const std::vector<TimeEvidence>& evidence);
    template <class Visit>
    void for_uses(const Point& point, Visit visit) const;

    const Space& space_;
    TimeRules rules_;
    std::vector<double> mean_, precision_, theta_;
    int told_ = 0;
    std::vector<std::vector<Uses>> values_;  // axis → value → uses
    std::vector<Uses> patches_;
    struct Enabled {
        int axis = 0, value = 0, patch = 0;
        Uses uses;
    };
    std::vector<Enabled> enabled_;
    Cholesky posterior_;
    std::vector<double> covariance_;  // dense, row-major
};

}  // namespace infrarsi
