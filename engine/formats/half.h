// SPDX-License-Identifier: Apache-2.0
// Converts float to and from f16 and bf16, rounding to nearest with ties to even. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

namespace baton {

constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000U} << 16;
  const uint32_t magnitude = uint32_t{half & 0x7FFFU} << 13;
  constexpr uint32_t kInfinity = 0x7C00U << 13;
  if (magnitude >= kInfinity) return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x007FFFFFU));
  // 2^112 corrects the exponent: float's bias is 127, f16's is 15. The product also normalizes a subnormal f16.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f));
}

// Values that round beyond f16's range become infinity. NaN stays NaN.
constexpr uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return sign | 0x7E00U;
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) return sign | 0x7C00U;
  if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // The result is subnormal. In [0.5, 1) the last bit of a float is 2^-24, as in a subnormal f16: adding 0.5 rounds.
    const uint32_t sum = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (sum - std::bit_cast<uint32_t>(0.5f)));
  }
  magnitude += 0xFFFU + (magnitude >> 13 & 1U);
  return static_cast<uint16_t>(sign | ((magnitude - (112U << 23)) >> 13));
}

constexpr float BFloat16ToFloat(uint16_t bfloat) { return std::bit_cast<float>(uint32_t{bfloat} << 16); }

constexpr uint16_t FloatToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace baton
