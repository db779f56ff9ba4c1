#pragma once
// A symmetric positive definite matrix by its factor A = L Lᵀ: what the time surrogate and the memory ledger share.
// Rows are sparse (a candidate changes few settings), the factor is dense. Costs: factor O(n³/6), update and solve
// O(n²/2). Source: notes on statistics §10.

#include <cstddef>
#include <vector>

namespace infrarsi {

// One non-zero of a row: the feature's index and its value. A row is sorted by index.
struct Term {
    int feature = 0;
    double value = 0;

    bool operator==(const Term&) const = default;
};
using SparseRow = std::vector<Term>;

[[nodiscard]] double dot(const SparseRow& row, const std::vector<double>& dense);

// a − b, term by term.
[[nodiscard]] SparseRow difference(const SparseRow& a, const SparseRow& b);

// rowᵀ S row of a dense symmetric matrix, row-major: O(terms²/2).
[[nodiscard]] double quadratic_form(const std::vector<double>& symmetric, const SparseRow& row);

class Cholesky {
public:
    // The diagonal matrix of these precisions, all > 0.
    [[nodiscard]] static Cholesky of_diagonal(const std::vector<double>& precisions);
    // diag(precisions) + Σ weight_i · row_i row_iᵀ with weights ≥ 0, factored once.
    [[nodiscard]] static Cholesky of_rows(const std::vector<double>& precisions, const std::vector<SparseRow>& rows,
                                          const std::vector<double>& weights);

    // A ← A + row rowᵀ, by Givens rotations.
    void add(const SparseRow& row);

    [[nodiscard]] std::size_t size() const { return size_; }
    // A⁻¹ b by two triangular solves.
    [[nodiscard]] std::vector<double> solve(std::vector<double> b) const;
    // rowᵀ A⁻¹ row = ‖L⁻¹ row‖², never through the inverse.
    [[nodiscard]] double inverse_form(const SparseRow& row) const;
    // A⁻¹ itself, dense and row-major, O(n³/3): for asking thousands of forms of few terms.
    [[nodiscard]] std::vector<double> inverse() const;
    // ln det A.
    [[nodiscard]] double log_determinant() const;

private:
    [[nodiscard]] double* column(std::size_t j) { return lower_.data() + j * size_; }
    [[nodiscard]] const double* column(std::size_t j) const { return lower_.data() + j * size_; }
    void factor();

    std::size_t size_ = 0;
    std::vector<double> lower_;  // column-major, the upper part unused
};

}  // namespace infrarsi
