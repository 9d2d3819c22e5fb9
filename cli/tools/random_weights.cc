// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/random_weights.h"

#include <cstddef>

#include "common/split_mix.h"

namespace baton {
namespace {

// Mean and standard deviation of the sum of four uniform numbers from 0 to 65535.
constexpr int kSumMean = 2 * 65535;
constexpr float kSumDeviation = 37837.227f;  // sqrt(4 * (65536^2 - 1) / 12)

}  // namespace

void FillRandomRow(uint64_t seed, uint64_t tensor, uint64_t row, float deviation, std::span<float> values) {
  const uint64_t start =
      SplitMix(SplitMix(SplitMix(seed + kSplitMixStep) + tensor + kSplitMixStep) + row + kSplitMixStep);
  const float scale = deviation / kSumDeviation;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = SplitMix(start + (i + 1) * kSplitMixStep);
    const auto sum = static_cast<int>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
    values[i] = static_cast<float>(sum - kSumMean) * scale;
  }
}

}  // namespace baton
