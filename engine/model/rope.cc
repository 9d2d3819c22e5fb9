// SPDX-License-Identifier: Apache-2.0
#include "engine/model/rope.h"

#include <cstddef>

#include "engine/kernels/det_math.h"

namespace baton {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Llama 3.1's scaling, by the turns of a pair within the original context:
//   fewer than low_freq_factor   the frequency is divided by `factor`
//   more than high_freq_factor   the frequency stays
//   between                      the two are blended linearly
double Llama3Frequency(const RopeConfig& config, double frequency) {
  const double turns = config.original_max_position * frequency / kTwoPi;
  if (turns < config.low_freq_factor) return frequency / config.factor;
  if (turns > config.high_freq_factor) return frequency;
  const double keep = (turns - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor);
  return (1.0 - keep) * frequency / config.factor + keep * frequency;
}

}  // namespace

std::vector<double> RopeFrequencies(const RopeConfig& config, int head_dim) {
  std::vector<double> frequencies(head_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double frequency = DetPow(config.theta, -2.0 * static_cast<double>(i) / head_dim);
    if (config.scaling == RopeConfig::Scaling::kLinear) frequency /= config.factor;
    if (config.scaling == RopeConfig::Scaling::kLlama3) frequency = Llama3Frequency(config, frequency);
    frequencies[i] = frequency;
  }
  return frequencies;
}

RopeTable BuildRopeTable(const RopeConfig& config, int head_dim, int positions) {
  const std::vector<double> frequencies = RopeFrequencies(config, head_dim);
  RopeTable table;
  table.half_dim = head_dim / 2;
  table.cos.reserve(size_t(positions) * frequencies.size());  // [positions, head_dim / 2]
  table.sin.reserve(size_t(positions) * frequencies.size());
  for (int position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      table.cos.push_back(static_cast<float>(DetCos(position * frequency)));
      table.sin.push_back(static_cast<float>(DetSin(position * frequency)));
    }
  }
  return table;
}

}  // namespace baton
