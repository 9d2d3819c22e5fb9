// SPDX-License-Identifier: Apache-2.0
// The generator SplitMix64 (Steele, Lea, Flood, 2014): the state counts in steps, and the output mixes the state.
#pragma once

#include <cstdint>

namespace baton {

inline constexpr uint64_t kSplitMixStep = 0x9E3779B97F4A7C15;

// Every bit of `z` reaches every bit of the result.
constexpr uint64_t SplitMix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace baton
