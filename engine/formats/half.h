// The 16-bit floats of model files, to and from float, exactly: bit operations and arithmetic that rounds to nearest,
// ties to even. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

namespace baton {

constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000U} << 16;
  const uint32_t magnitude = uint32_t{half & 0x7FFFU} << 13;
  constexpr uint32_t kInfinity = 0x7C00U << 13;
  if (magnitude >= kInfinity) return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x007FFFFFU));
  // The exponents' biases differ by 112; the product makes a subnormal half normal.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f));
}

// Too large becomes infinity; NaN stays NaN.
constexpr uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return sign | 0x7E00U;
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) return sign | 0x7C00U;
  if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // Subnormal: next to 0.5 a float's last bit is worth what a subnormal half's is, so that the sum rounds there.
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
