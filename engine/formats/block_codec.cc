#include "engine/formats/block_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/formats/half.h"

namespace baton {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

float LoadHalf(const std::byte* at) { return HalfToFloat(Load<uint16_t>(at)); }
int Low(std::byte b) { return static_cast<int>(b) & 15; }
int High(std::byte b) { return static_cast<int>(b) >> 4; }

// The types of 32 values. 4-bit codes: byte j has value j below value j + 16.
constexpr int kSmall = 32;

void DecodeQ8_0(const std::byte* block, float* out) {  // f16 scale | int8 codes[32]
  const float scale = LoadHalf(block);
  for (int i = 0; i < kSmall; ++i) out[i] = scale * static_cast<float>(Load<int8_t>(block + 2 + i));
}

void DecodeQ4_0(const std::byte* block, float* out) {  // f16 scale | codes[16]
  const float scale = LoadHalf(block);
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = scale * static_cast<float>(Low(block[2 + i]) - 8);
    out[i + kSmall / 2] = scale * static_cast<float>(High(block[2 + i]) - 8);
  }
}

void DecodeQ4_1(const std::byte* block, float* out) {  // f16 scale | f16 minimum | codes[16]
  const float scale = LoadHalf(block);
  const float minimum = LoadHalf(block + 2);
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = scale * static_cast<float>(Low(block[4 + i])) + minimum;
    out[i + kSmall / 2] = scale * static_cast<float>(High(block[4 + i])) + minimum;
  }
}

// Bit i of `fifth` is bit 4 of code i.
int FifthBit(uint32_t fifth, ptrdiff_t i) { return static_cast<int>(fifth >> i & 1) << 4; }

void DecodeQ5_0(const std::byte* block, float* out) {  // f16 scale | fifth bits, uint32 | codes[16]
  const float scale = LoadHalf(block);
  const auto fifth = Load<uint32_t>(block + 2);
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = scale * static_cast<float>((Low(block[6 + i]) | FifthBit(fifth, i)) - 16);
    out[i + kSmall / 2] = scale * static_cast<float>((High(block[6 + i]) | FifthBit(fifth, i + kSmall / 2)) - 16);
  }
}

void DecodeQ5_1(const std::byte* block, float* out) {  // f16 scale | f16 minimum | fifth bits, uint32 | codes[16]
  const float scale = LoadHalf(block);
  const float minimum = LoadHalf(block + 2);
  const auto fifth = Load<uint32_t>(block + 4);
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = scale * static_cast<float>(Low(block[8 + i]) | FifthBit(fifth, i)) + minimum;
    out[i + kSmall / 2] = scale * static_cast<float>(High(block[8 + i]) | FifthBit(fifth, i + kSmall / 2)) + minimum;
  }
}

// The types of 256 values: 8 or 16 groups with small integer scales, themselves scaled by one f16 per block.
constexpr int kGroup = 32;

struct GroupScale {
  int scale;
  int minimum;
};

// Eight 6-bit scales and eight 6-bit minimums in 12 bytes: bytes 0-3 hold scales 0-3 and 4-7 minimums 0-3, in their low
// 6 bits; bytes 8-11 hold the low 4 bits of scales and minimums 4-7, whose upper 2 bits are the upper ones of bytes
// 0-7.
GroupScale UnpackGroupScale(const std::byte* packed, ptrdiff_t group) {
  const auto byte = [packed](ptrdiff_t i) { return static_cast<int>(packed[i]); };
  if (group < 4) return {byte(group) & 63, byte(group + 4) & 63};
  return {(byte(group + 4) & 15) | (byte(group - 4) >> 6) << 4, byte(group + 4) >> 4 | (byte(group) >> 6) << 4};
}

// f16 scale | f16 scale of the minimums | group scales[12] | codes[128]. Each 32 bytes of codes are two groups: low and
// high halves of the bytes.
void DecodeQ4_K(const std::byte* block, float* out) {
  const float scale = LoadHalf(block);
  const float minimum_scale = LoadHalf(block + 2);
  for (ptrdiff_t group = 0; group < 8; ++group) {
    const GroupScale packed = UnpackGroupScale(block + 4, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float minimum = minimum_scale * static_cast<float>(packed.minimum);
    const std::byte* codes = block + 16 + group / 2 * kGroup;
    for (int i = 0; i < kGroup; ++i) {
      const int code = group % 2 == 0 ? Low(codes[i]) : High(codes[i]);
      *out++ = group_scale * static_cast<float>(code) - minimum;
    }
  }
}

// As Q4_K with 32 bytes before the codes: bit g of byte i is bit 4 of value i of group g.
void DecodeQ5_K(const std::byte* block, float* out) {
  const float scale = LoadHalf(block);
  const float minimum_scale = LoadHalf(block + 2);
  const std::byte* fifth = block + 16;
  for (ptrdiff_t group = 0; group < 8; ++group) {
    const GroupScale packed = UnpackGroupScale(block + 4, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float minimum = minimum_scale * static_cast<float>(packed.minimum);
    const std::byte* codes = block + 48 + group / 2 * kGroup;
    for (int i = 0; i < kGroup; ++i) {
      const int code = group % 2 == 0 ? Low(codes[i]) : High(codes[i]);
      *out++ = group_scale * static_cast<float>(code | FifthBit(static_cast<uint32_t>(fifth[i]), group)) - minimum;
    }
  }
}

// Low 4 bits of the codes[128] | upper 2 bits[64] | int8 scales[16], one per 16 values | f16 scale. Each half of the
// values has 64 bytes of low bits, two rows of 32: their low halves come first, then their high halves; and 32 bytes of
// upper bits, two per row of 32 values.
void DecodeQ6_K(const std::byte* block, float* out) {
  const float scale = LoadHalf(block + 208);
  for (ptrdiff_t row = 0; row < 8; ++row) {
    const std::byte* low = block + row / 4 * 64 + row % 2 * kGroup;
    const std::byte* upper = block + 128 + row / 4 * kGroup;
    for (int i = 0; i < kGroup; ++i) {
      const int four = row % 4 < 2 ? Low(low[i]) : High(low[i]);
      const int two = static_cast<int>(upper[i]) >> row % 4 * 2 & 3;
      const float group_scale = scale * static_cast<float>(Load<int8_t>(block + 192 + row * 2 + i / 16));
      *out++ = group_scale * static_cast<float>((four | two << 4) - 32);
    }
  }
}

using DecodeBlock = void (*)(const std::byte*, float*);

DecodeBlock DecoderOf(TensorType type) {
  switch (type) {
    case TensorType::kQ8_0:
      return DecodeQ8_0;
    case TensorType::kQ4_0:
      return DecodeQ4_0;
    case TensorType::kQ4_1:
      return DecodeQ4_1;
    case TensorType::kQ5_0:
      return DecodeQ5_0;
    case TensorType::kQ5_1:
      return DecodeQ5_1;
    case TensorType::kQ4_K:
      return DecodeQ4_K;
    case TensorType::kQ5_K:
      return DecodeQ5_K;
    case TensorType::kQ6_K:
      return DecodeQ6_K;
    case TensorType::kF32:
      return [](const std::byte* at, float* out) { *out = Load<float>(at); };
    case TensorType::kF16:
      return [](const std::byte* at, float* out) { *out = LoadHalf(at); };
    case TensorType::kBF16:
      return [](const std::byte* at, float* out) { *out = BFloat16ToFloat(Load<uint16_t>(at)); };
  }
  return nullptr;
}

// To the nearest integer, ties to even, for |x| < 2^22: the sum has no bits left for a fraction.
int Round(float x) {
  constexpr float kShift = 0x1.8p23f;
  return static_cast<int>(x + kShift - kShift);
}

float Inverse(float scale) { return scale == 0 ? 0 : 1 / scale; }

bool IsFinite(float x) { return std::fabs(x) <= std::numeric_limits<float>::max(); }

bool EncodeQ8_0(const float* values, std::byte* block) {
  float greatest = 0;
  bool finite = true;
  for (int i = 0; i < kSmall; ++i) {
    finite = finite && IsFinite(values[i]);
    greatest = std::max(greatest, std::fabs(values[i]));
  }
  const uint16_t scale = FloatToHalf(greatest / 127);
  if (!finite || !IsFinite(HalfToFloat(scale))) return false;
  const float inverse = Inverse(HalfToFloat(scale));
  std::memcpy(block, &scale, sizeof(scale));
  for (int i = 0; i < kSmall; ++i) {
    // A subnormal scale may be rounded by much.
    block[2 + i] = static_cast<std::byte>(Round(std::clamp(values[i] * inverse, -127.0f, 127.0f)));
  }
  return true;
}

bool EncodeQ4_0(const float* values, std::byte* block) {
  float greatest = 0;
  bool finite = true;
  for (int i = 0; i < kSmall; ++i) {
    finite = finite && IsFinite(values[i]);
    if (std::fabs(values[i]) > std::fabs(greatest)) greatest = values[i];
  }
  const uint16_t scale = FloatToHalf(greatest / -8);
  if (!finite || !IsFinite(HalfToFloat(scale))) return false;
  const float inverse = Inverse(HalfToFloat(scale));
  std::memcpy(block, &scale, sizeof(scale));
  const auto code = [inverse](float value) { return Round(std::clamp(value * inverse, -8.0f, 7.0f)) + 8; };
  for (int i = 0; i < kSmall / 2; ++i) {
    block[2 + i] = static_cast<std::byte>(code(values[i]) | code(values[i + kSmall / 2]) << 4);
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
  const TensorTypeInfo info = InfoOf(type);
  const DecodeBlock decode = DecoderOf(type);
  for (size_t at = 0; at < values; at += info.block_values) {
    decode(blocks, out + at);
    blocks += info.block_bytes;
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
