// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/rope_factors.h"

#include <cmath>

#include "engine/kernels/det_math.h"

namespace baton {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;
constexpr double kTolerance = 1e-4;  // relative; float rounding stays below

}  // namespace

double Llama3Frequency(const Llama3Scaling& scaling, double frequency) {
  const double turns = scaling.original_max_position * frequency / kTwoPi;
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  if (turns > scaling.high_freq_factor) return frequency;
  const double keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - keep) * frequency / scaling.factor + keep * frequency;
}

std::vector<float> Llama3RopeFactors(const Llama3Scaling& scaling, double theta, int head_dim) {
  std::vector<float> factors(head_dim / 2);
  for (size_t i = 0; i < factors.size(); ++i) {
    const double frequency = DetPow(theta, -2.0 * static_cast<double>(i) / head_dim);
    factors[i] = static_cast<float>(frequency / Llama3Frequency(scaling, frequency));
  }
  return factors;
}

std::optional<Llama3Scaling> MatchLlama3RopeFactors(std::span<const float> factors, double theta,
                                                    double original_max_position) {
  if (factors.empty()) return std::nullopt;
  Llama3Scaling scaling;
  scaling.factor = factors.back();  // the lowest frequency is divided by the full factor
  scaling.original_max_position = original_max_position;
  const std::vector<float> expected = Llama3RopeFactors(scaling, theta, static_cast<int>(factors.size()) * 2);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!(std::fabs(factors[i] - expected[i]) <= kTolerance * expected[i])) return std::nullopt;
  }
  return scaling;
}

}  // namespace baton
