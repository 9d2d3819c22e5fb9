// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/block_codec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/formats/code_groups.h"
#include "engine/formats/half.h"

namespace baton {
namespace {

constexpr int kBlockValues = 32;  // of Q8_0 and Q4_0

void DecodeGroups(TensorType type, const std::byte* blocks, size_t values, float* out) {
  const GroupShape shape = GroupShapeOf(type);
  CodeGroup group;
  for (size_t g = 0; g < values / shape.values; ++g, out += shape.values) {
    ReadCodeGroup(type, blocks, g, group);
    for (int i = 0; i < shape.values; ++i) out[i] = group.scale * static_cast<float>(group.codes[i]);
    if (!shape.has_minimum) continue;  // adding 0 would turn -0 into 0
    for (int i = 0; i < shape.values; ++i) out[i] += group.minimum;
  }
}

template <typename T, typename Widen>
void DecodeFloats(const std::byte* values, size_t count, Widen widen, float* out) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, values + i * sizeof(T), sizeof(T));
    out[i] = widen(value);
  }
}

// Rounds |x| < 2^22 to the nearest integer, ties to even: a float near 2^23 has no bits for a fraction.
int Round(float x) {
  constexpr float kShift = 0x1.8p23f;
  return static_cast<int>(x + kShift - kShift);
}

float Inverse(float scale) { return scale == 0 ? 0 : 1 / scale; }

bool IsFinite(float x) { return std::fabs(x) <= std::numeric_limits<float>::max(); }

bool EncodeQ8_0(const float* values, std::byte* block) {
  float greatest = 0;
  bool finite = true;
  for (int i = 0; i < kBlockValues; ++i) {
    finite = finite && IsFinite(values[i]);
    greatest = std::max(greatest, std::fabs(values[i]));
  }
  const uint16_t scale = FloatToHalf(greatest / 127);
  if (!finite || !IsFinite(HalfToFloat(scale))) return false;
  const float inverse = Inverse(HalfToFloat(scale));
  std::memcpy(block, &scale, sizeof(scale));
  for (int i = 0; i < kBlockValues; ++i) {
    // The clamp is needed: the rounding error of a subnormal scale can be large.
    block[2 + i] = static_cast<std::byte>(Round(std::clamp(values[i] * inverse, -127.0f, 127.0f)));
  }
  return true;
}

bool EncodeQ4_0(const float* values, std::byte* block) {
  float greatest = 0;
  bool finite = true;
  for (int i = 0; i < kBlockValues; ++i) {
    finite = finite && IsFinite(values[i]);
    if (std::fabs(values[i]) > std::fabs(greatest)) greatest = values[i];
  }
  const uint16_t scale = FloatToHalf(greatest / -8);
  if (!finite || !IsFinite(HalfToFloat(scale))) return false;
  const float inverse = Inverse(HalfToFloat(scale));
  std::memcpy(block, &scale, sizeof(scale));
  const auto code = [inverse](float value) { return Round(std::clamp(value * inverse, -8.0f, 7.0f)) + 8; };
  for (int i = 0; i < kBlockValues / 2; ++i) {
    block[2 + i] = static_cast<std::byte>(code(values[i]) | code(values[i + kBlockValues / 2]) << 4);
  }
  return true;
}

template <typename T, typename Convert>
bool EncodeFloats(std::span<const float> values, std::byte* out, Convert convert) {
  bool finite = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const T converted = convert(values[i]);
    std::memcpy(out + i * sizeof(T), &converted, sizeof(T));
    finite = finite && IsFinite(values[i]);
  }
  return finite;
}

}  // namespace

void DecodeBlocks(TensorType type, const std::byte* blocks, size_t values, float* out) {
  switch (type) {
    case TensorType::kF32: return DecodeFloats<float>(blocks, values, [](float x) { return x; }, out);
    case TensorType::kF16: return DecodeFloats<uint16_t>(blocks, values, HalfToFloat, out);
    case TensorType::kBF16: return DecodeFloats<uint16_t>(blocks, values, BFloat16ToFloat, out);
    default: return DecodeGroups(type, blocks, values, out);
  }
}

bool CanEncode(TensorType type) { return !IsQuantized(type) || type == TensorType::kQ8_0 || type == TensorType::kQ4_0; }

bool EncodeBlocks(TensorType type, std::span<const float> values, std::byte* out) {
  if (type == TensorType::kF32) return EncodeFloats<float>(values, out, [](float x) { return x; });
  if (type == TensorType::kF16) {
    constexpr float kTooLarge = 65520;  // becomes infinity
    return EncodeFloats<uint16_t>(values, out, FloatToHalf) &&
           std::all_of(values.begin(), values.end(), [](float x) { return std::fabs(x) < kTooLarge; });
  }
  if (type == TensorType::kBF16) return EncodeFloats<uint16_t>(values, out, FloatToBFloat16);
  const TensorTypeInfo info = InfoOf(type);
  const auto encode = type == TensorType::kQ8_0 ? EncodeQ8_0 : EncodeQ4_0;
  for (size_t at = 0; at < values.size(); at += info.block_values) {
    if (!encode(values.data() + at, out)) return false;
    out += info.block_bytes;
  }
  return true;
}

}  // namespace baton
