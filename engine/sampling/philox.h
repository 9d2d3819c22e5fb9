// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: pure functions of key and counter, so that a draw does not depend on other draws.
//
// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox4x32-10).
#pragma once

#include <array>
#include <cstdint>

namespace baton {

constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Returns a uniform number in [0, 1) with 53 bits, for output token `output_index` of answer `choice` to a request with
// `seed`.
constexpr double UniformDraw(uint64_t seed, uint32_t choice, uint32_t output_index) {
  const std::array<uint32_t, 4> bits =
      Philox4x32({output_index, choice, 0, 0}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<double>(((uint64_t{bits[0]} << 32) | bits[1]) >> 11) * 0x1p-53;
}

}  // namespace baton
