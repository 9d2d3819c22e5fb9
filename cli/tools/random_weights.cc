// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/random_weights.h"

#include <cstddef>

namespace baton {
namespace {

// The generator SplitMix64 (Steele, Lea, Flood, 2014): the state counts in steps, the output mixes the state.
constexpr uint64_t kStep = 0x9E3779B97F4A7C15;

constexpr uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Mean and standard deviation of the sum of four uniform numbers from 0 to 65535.
constexpr int kSumMean = 2 * 65535;
constexpr float kSumDeviation = 37837.227f;  // sqrt(4 * (65536^2 - 1) / 12)

}  // namespace

void FillRandomRow(uint64_t seed, uint64_t tensor, uint64_t row, float deviation, std::span<float> values) {
  const uint64_t start = Mix(Mix(Mix(seed + kStep) + tensor + kStep) + row + kStep);
  const float scale = deviation / kSumDeviation;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = Mix(start + (i + 1) * kStep);
    const auto sum = static_cast<int>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
    values[i] = static_cast<float>(sum - kSumMean) * scale;
  }
}

}  // namespace baton
