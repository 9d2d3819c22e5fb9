// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/rope_factors.h"

#include <cmath>

#include "engine/kernels/det_math.h"

namespace baton {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;
constexpr double kTolerance = 1e-4;  // relative; float rounding stays below

}  // namespace

std::vector<float> Llama3RopeFactors(const Llama3Scaling& scaling, double theta, int head_dim) {
  std::vector<float> factors(head_dim / 2);
  for (size_t i = 0; i < factors.size(); ++i) {
    const double frequency = DetPow(theta, -2.0 * static_cast<double>(i) / head_dim);
    const double turns = scaling.original_max_position * frequency / kTwoPi;
    double factor = scaling.factor;
    if (turns > scaling.high_freq_factor) {
      factor = 1;
    } else if (turns >= scaling.low_freq_factor) {
      const double keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      factor = 1 / ((1 - keep) / scaling.factor + keep);
    }
    factors[i] = static_cast<float>(factor);
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
