// SPDX-License-Identifier: Apache-2.0
#include "engine/model/rope.h"

#include <cstddef>

#include "engine/formats/rope_factors.h"
#include "engine/kernels/det_math.h"

namespace baton {

std::vector<double> RopeFrequencies(const RopeConfig& config, int head_dim) {
  const Llama3Scaling llama3 = {.factor = config.factor,
                                .low_freq_factor = config.low_freq_factor,
                                .high_freq_factor = config.high_freq_factor,
                                .original_max_position = config.original_max_position};
  std::vector<double> frequencies(head_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double frequency = DetPow(config.theta, -2.0 * static_cast<double>(i) / head_dim);
    if (config.scaling == RopeConfig::Scaling::kLinear) frequency /= config.factor;
    if (config.scaling == RopeConfig::Scaling::kLlama3) frequency = Llama3Frequency(llama3, frequency);
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
