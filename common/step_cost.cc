// SPDX-License-Identifier: Apache-2.0
#include "common/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace baton {
namespace {

constexpr int kFigures = 5;
using Vector = std::array<double, kFigures>;
using Matrix = std::array<Vector, kFigures>;

// The weight of the latest step in its cell's mean. A step that takes kOutlier times the mean was disturbed and counts
// as much less.
constexpr double kLatest = 0.1;
constexpr double kOutlier = 3;
constexpr int kFirstSteps = 10;

// A mean squared relative error.
constexpr double kClearly = 1e-4;

size_t CellOf(double count, size_t cells) {
  return std::min<size_t>(std::bit_width(static_cast<uint64_t>(std::max(count, 0.0))), cells - 1);
}

// Solves a * x = b for the figures of `used`, the others being 0. Returns nullopt if the cells do not tell the figures
// apart.
std::optional<Vector> Solve(Matrix a, Vector b, unsigned used) {
  Vector x = {};
  for (int i = 0; i < kFigures; ++i) {
    if ((used >> i & 1) != 0) continue;
    a[i].fill(0);
    for (Vector& row : a) row[i] = 0;
    a[i][i] = 1;
    b[i] = 0;
  }
  // Cholesky's decomposition, in place; scaled pivots show dependence.
  const Matrix original = a;
  for (int i = 0; i < kFigures; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (int k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j) {
        if (sum <= 1e-9 * original[i][i]) return std::nullopt;
        a[i][i] = std::sqrt(sum);
      } else {
        a[i][j] = sum / a[j][j];
      }
    }
  }
  for (int i = 0; i < kFigures; ++i) {
    double sum = b[i];
    for (int k = 0; k < i; ++k) sum -= a[i][k] * x[k];
    x[i] = sum / a[i][i];
  }
  for (int i = kFigures - 1; i >= 0; --i) {
    double sum = x[i];
    for (int k = i + 1; k < kFigures; ++k) sum -= a[k][i] * x[k];
    x[i] = sum / a[i][i];
  }
  return x;
}

}  // namespace

int StepCost::PromptTokensWithin(double seconds, const StepWork& work, int position) const {
  const double left = seconds - Seconds(work);
  if (left <= 0) return 0;
  if (std::isinf(left)) return INT32_MAX;
  // A chunk of n tokens costs n * (prompt_token + prompt_attended * (position + (n + 1) / 2)).
  const double square = prompt_attended / 2;
  const double linear = prompt_token + prompt_attended * (position + 0.5);
  if (linear <= 0) return INT32_MAX;
  // The form of the root that stays exact for a small square.
  const double tokens = 2 * left / (linear + std::sqrt(linear * linear + 4 * square * left));
  return static_cast<int>(std::min<double>(tokens, INT32_MAX));
}

void StepCostEstimate::Add(const StepWork& work, double seconds) {
  const double rows = work.prompt_tokens + work.decode_rows;
  if (seconds <= 0 || rows <= 0) return;
  const double context = (work.prompt_attended + work.decode_attended) / rows;
  const size_t context_cell = context < 512 ? 0 : context < 4096 ? 1 : 2;
  Cell& cell = cells_[(CellOf(work.prompt_tokens, kPromptCells) * kRowCells + CellOf(work.decode_rows, kRowCells)) *
                          kContextCells +
                      context_cell];
  ++cell.steps;
  double weight = std::max(1.0 / cell.steps, kLatest);
  if (cell.steps > kFirstSteps) weight *= std::min(1.0, kOutlier * cell.seconds / seconds);
  cell.work.prompt_tokens += weight * (work.prompt_tokens - cell.work.prompt_tokens);
  cell.work.decode_rows += weight * (work.decode_rows - cell.work.decode_rows);
  cell.work.prompt_attended += weight * (work.prompt_attended - cell.work.prompt_attended);
  cell.work.decode_attended += weight * (work.decode_attended - cell.work.decode_attended);
  cell.seconds += weight * (seconds - cell.seconds);
}

StepCost StepCostEstimate::Fit() const {
  std::vector<MeasuredStep> means;
  for (const Cell& cell : cells_) {
    if (cell.steps > 0) means.push_back({cell.work, cell.seconds});
  }
  return FitStepCost(means);
}

StepCost FitStepCost(std::span<const MeasuredStep> steps) {
  Matrix a = {};
  Vector b = {};
  for (const MeasuredStep& step : steps) {
    // Divided by the step's time: a small step's error counts as much as a large step's.
    const Vector x = {1 / step.seconds, step.work.prompt_tokens / step.seconds, step.work.decode_rows / step.seconds,
                      step.work.prompt_attended / step.seconds, step.work.decode_attended / step.seconds};
    for (int i = 0; i < kFigures; ++i) {
      for (int j = 0; j < kFigures; ++j) a[i][j] += x[i] * x[j];
      b[i] += x[i];
    }
  }
  // No figure may be negative: of the sets of figures with a solution that is not, takes the one with the least error.
  // A later set, of figures that matter less, must be clearly better.
  Vector best = {};
  double least = 0;  // the squared error, less that of a cost of 0
  for (unsigned used = 1; used < 1u << kFigures; ++used) {
    const std::optional<Vector> x = Solve(a, b, used);
    if (!x || std::ranges::any_of(*x, [](double figure) { return figure < 0; })) continue;
    double error = 0;
    for (int i = 0; i < kFigures; ++i) {
      error -= 2 * (*x)[i] * b[i];
      for (int j = 0; j < kFigures; ++j) error += (*x)[i] * a[i][j] * (*x)[j];
    }
    if (error >= least - kClearly * static_cast<double>(steps.size())) continue;
    least = error;
    best = *x;
  }
  return {best[0], best[1], best[2], best[3], best[4]};
}

}  // namespace baton
