// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling/logits.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/kernels/det_math.h"

namespace baton {
namespace {

constexpr float kHighest = std::numeric_limits<float>::max();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr size_t kLanes = 16;

}  // namespace

float Max(std::span<const float> values) {
  std::array<float, kLanes> lanes;
  lanes.fill(kMinusInfinity);
  const auto take = [&lanes](size_t lane, float x) {
    const float candidate = x <= kHighest ? x : kMinusInfinity;
    lanes[lane] = candidate > lanes[lane] ? candidate : lanes[lane];
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, values[i + lane]);
  }
  for (; i < values.size(); ++i) take(0, values[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

void CopyFinite(std::span<const float> logits, std::span<float> out) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i];
    // NaN fails both comparisons. `&` avoids a branch.
    out[i] = ((x >= kLowestLogit) & (x <= kHighest)) ? x : kLowestLogit;
  }
}

TokenId ArgMax(std::span<const float> values) {
  // Finds a block's maximum with vector code. Searches the index only if the block beats the blocks before it.
  constexpr size_t kBlock = 1024;
  float best = kMinusInfinity;
  size_t best_index = 0;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const float> block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const float highest = Max(block);
    if (highest > best) {
      best = highest;
      best_index = begin + static_cast<size_t>(std::find(block.begin(), block.end(), highest) - block.begin());
    }
  }
  return static_cast<TokenId>(best_index);
}

std::vector<std::pair<TokenId, float>> Highest(std::span<const float> values, size_t count) {
  std::vector<std::pair<TokenId, float>> highest;
  count = std::min(count, values.size());
  if (count == 0) return highest;
  highest.reserve(count + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    // Ids ascend, so a value equal to the last entry ranks below it.
    if (highest.size() == count && values[i] <= highest.back().second) continue;
    const auto place =
        std::find_if(highest.begin(), highest.end(), [&](const auto& entry) { return entry.second < values[i]; });
    highest.emplace(place, static_cast<TokenId>(i), values[i]);
    if (highest.size() > count) highest.pop_back();
  }
  return highest;
}

void Exponentials(std::span<const float> values, float max, float temperature, std::vector<float>& out) {
  out.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) out[i] = (values[i] - max) / temperature;
  DetExp(out, out);
}

// Value i goes to lane i mod kLanes; the lanes are added in a fixed tree.
double Sum(std::span<const float> values) {
  std::array<double, kLanes> lanes{};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  for (size_t lane = 0; i < values.size(); ++i, ++lane) lanes[lane] += values[i];
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace baton
