#include "core/search/cholesky.h"

#include <cmath>

#include "core/base/error.h"

namespace infrarsi {

double dot(const SparseRow& row, const std::vector<double>& dense) {
    double sum = 0;
    for (const Term& term : row) sum += term.value * dense[static_cast<std::size_t>(term.feature)];
    return sum;
}

SparseRow difference(const SparseRow& a, const SparseRow& b) {
    SparseRow result;
    auto left = a.begin();
    auto right = b.begin();
    while (left != a.end() || right != b.end()) {
        if (right == b.end() || (left != a.end() && left->feature < right->feature)) {
            result.push_back(*left++);
        } else if (left == a.end() || right->feature < left->feature) {
            result.push_back({right->feature, -right->value});
            ++right;
        } else {
            if (left->value != right->value) result.push_back({left->feature, left->value - right->value});
            ++left;
            ++right;
        }
    }
    return result;
}

Cholesky Cholesky::of_diagonal(const std::vector<double>& precisions) {
    Cholesky result;
    result.size_ = precisions.size();
    result.lower_.assign(result.size_ * result.size_, 0.0);
    for (std::size_t i = 0; i < precisions.size(); ++i) {
        INFRARSI_CHECK(precisions[i] > 0, "a prior precision is positive");
        result.column(i)[i] = std::sqrt(precisions[i]);
    }
    return result;
}

Cholesky Cholesky::of_rows(const std::vector<double>& precisions, const std::vector<SparseRow>& rows,
                           const std::vector<double>& weights) {
    Cholesky result;
    result.size_ = precisions.size();
    result.lower_.assign(result.size_ * result.size_, 0.0);
    for (std::size_t i = 0; i < precisions.size(); ++i) result.column(i)[i] = precisions[i];
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t a = 0; a < rows[r].size(); ++a) {
            const double scaled = weights[r] * rows[r][a].value;
            double* column = result.column(static_cast<std::size_t>(rows[r][a].feature));
            for (std::size_t b = a; b < rows[r].size(); ++b) column[rows[r][b].feature] += scaled * rows[r][b].value;
        }
    }
    result.factor();
    return result;
}

// Right-looking by columns, so that the inner loop runs along memory. A column updates only those columns for which it
// has a non-zero: few candidates touch few features, and most of the matrix stays diagonal.
void Cholesky::factor() {
    for (std::size_t j = 0; j < size_; ++j) {
        double* pivot = column(j);
        INFRARSI_CHECK(pivot[j] > 0, "a precision matrix with a prior is positive definite");
        const double root = std::sqrt(pivot[j]);
        pivot[j] = root;
        for (std::size_t i = j + 1; i < size_; ++i) pivot[i] /= root;
        for (std::size_t k = j + 1; k < size_; ++k) {
            const double factor = pivot[k];
            if (factor == 0) continue;
            double* target = column(k);
            for (std::size_t i = k; i < size_; ++i) target[i] -= factor * pivot[i];
        }
    }
}

void Cholesky::add(const SparseRow& row) {
    std::vector<double> x(size_, 0.0);
    for (const Term& term : row) x[static_cast<std::size_t>(term.feature)] = term.value;
    const std::size_t first = row.empty() ? size_ : static_cast<std::size_t>(row.front().feature);
    for (std::size_t j = first; j < size_; ++j) {
        if (x[j] == 0) continue;
        double* pivot = column(j);
        const double r = std::hypot(pivot[j], x[j]);
        const double c = r / pivot[j];
        const double s = x[j] / pivot[j];
        pivot[j] = r;
        for (std::size_t i = j + 1; i < size_; ++i) {
            pivot[i] = (pivot[i] + s * x[i]) / c;
            x[i] = c * x[i] - s * pivot[i];
        }
    }
}

std::vector<double> Cholesky::solve(std::vector<double> b) const {
    for (std::size_t j = 0; j < size_; ++j) {
        const double* pivot = column(j);
        b[j] /= pivot[j];
        if (b[j] == 0) continue;
        for (std::size_t i = j + 1; i < size_; ++i) b[i] -= pivot[i] * b[j];
    }
    for (std::size_t j = size_; j-- > 0;) {
        const double* pivot = column(j);
        double sum = b[j];
        for (std::size_t i = j + 1; i < size_; ++i) sum -= pivot[i] * b[i];
        b[j] = sum / pivot[j];
    }
    return b;
}

double Cholesky::inverse_form(const SparseRow& row) const {
    std::vector<double> z(size_, 0.0);
    for (const Term& term : row) z[static_cast<std::size_t>(term.feature)] = term.value;
    const std::size_t first = row.empty() ? size_ : static_cast<std::size_t>(row.front().feature);
    double sum = 0;
    for (std::size_t j = first; j < size_; ++j) {
        if (z[j] == 0) continue;
        const double* pivot = column(j);
        z[j] /= pivot[j];
        sum += z[j] * z[j];
        for (std::size_t i = j + 1; i < size_; ++i) z[i] -= pivot[i] * z[j];
    }
    return sum;
}

std::vector<double> Cholesky::inverse() const {
    std::vector<double> result(size_ * size_);
    for (std::size_t i = 0; i < size_; ++i) {
        std::vector<double> unit(size_, 0.0);
        unit[i] = 1;
        unit = solve(std::move(unit));
        std::copy(unit.begin(), unit.end(), result.begin() + static_cast<std::ptrdiff_t>(i * size_));
    }
    return result;
}

double quadratic_form(const std::vector<double>& symmetric, const SparseRow& row) {
    const auto size = static_cast<std::size_t>(std::sqrt(static_cast<double>(symmetric.size())) + 0.5);
    double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double* line = symmetric.data() + static_cast<std::size_t>(row[i].feature) * size;
        double inner = 0.5 * row[i].value * line[row[i].feature];
        for (std::size_t j = 0; j < i; ++j) inner += row[j].value * line[row[j].feature];
        sum += 2 * row[i].value * inner;
    }
    return sum;
}

double Cholesky::log_determinant() const {
    double sum = 0;
    for (std::size_t j = 0; j < size_; ++j) sum += std::log(column(j)[j]);
    return 2 * sum;
}

}  // namespace infrarsi
