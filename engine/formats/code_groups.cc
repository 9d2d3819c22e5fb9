// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/code_groups.h"

#include <bit>
#include <cstring>

#include "engine/formats/half.h"

namespace baton {
namespace {

static_assert(std::endian::native == std::endian::little, "scales are copied from little-endian files");

float ReadHalf(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return HalfToFloat(bits);
}

int Byte(const std::byte* at, int i) { return static_cast<int>(at[i]); }
int Low(const std::byte* at, int i) { return Byte(at, i) & 15; }
int High(const std::byte* at, int i) { return Byte(at, i) >> 4; }

template <typename CodeAt>
void SetCodes(CodeGroup& out, int count, CodeAt code_at) {
  for (int i = 0; i < count; ++i) out.codes[i] = static_cast<int8_t>(code_at(i));
}

// Reads 32 4-bit codes from 16 bytes: codes 0-15 are the low halves, codes 16-31 the high halves. Subtracts `zero`.
void ReadFourBits(const std::byte* bytes, int zero, CodeGroup& out) {
  for (int i = 0; i < 16; ++i) {
    out.codes[i] = static_cast<int8_t>(Low(bytes, i) - zero);
    out.codes[i + 16] = static_cast<int8_t>(High(bytes, i) - zero);
  }
}

// Like ReadFourBits, with bit i of `fifth` as bit 4 of code i.
void ReadFiveBits(const std::byte* fifth, const std::byte* bytes, int zero, CodeGroup& out) {
  uint32_t bits;
  std::memcpy(&bits, fifth, sizeof(bits));
  for (int i = 0; i < 16; ++i) {
    out.codes[i] = static_cast<int8_t>((Low(bytes, i) | static_cast<int>(bits >> i & 1) << 4) - zero);
    out.codes[i + 16] = static_cast<int8_t>((High(bytes, i) | static_cast<int>(bits >> (i + 16) & 1) << 4) - zero);
  }
}

// Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit minimums into 12 bytes:
//   bytes 0-3   low 6 bits: scales 0-3          upper 2 bits: upper bits of scales 4-7
//   bytes 4-7   low 6 bits: minimums 0-3        upper 2 bits: upper bits of minimums 4-7
//   bytes 8-11  low half: low bits of scales 4-7, high half: low bits of minimums 4-7
struct Factors {
  int scale;
  int minimum;
};
Factors UnpackFactors(const std::byte* packed, int group) {
  if (group < 4) return {Byte(packed, group) & 63, Byte(packed, group + 4) & 63};
  return {Low(packed, group + 4) | (Byte(packed, group - 4) >> 6) << 4,
          High(packed, group + 4) | (Byte(packed, group) >> 6) << 4};
}

// Reads a group (32 values) of Q4_K or Q5_K. Block: f16 scale | f16 scale of the minimums | Factors[12] | fifth
// bits[32] (Q5_K only) | codes[128]. In each 32 bytes of codes, the low halves are one group and the high halves the
// next group. Bit g of fifth byte i belongs to code i of group g.
void ReadKGroup(const std::byte* block, int group, bool five_bits, CodeGroup& out) {
  const Factors factors = UnpackFactors(block + 4, group);
  out.scale = ReadHalf(block) * static_cast<float>(factors.scale);
  out.minimum = -(ReadHalf(block + 2) * static_cast<float>(factors.minimum));
  const std::byte* const fifth = block + 16;
  const std::byte* const codes = (five_bits ? fifth + 32 : fifth) + ptrdiff_t{group / 2} * 32;
  if (group % 2 == 0) {
    SetCodes(out, 32, [=](int i) { return Low(codes, i); });
  } else {
    SetCodes(out, 32, [=](int i) { return High(codes, i); });
  }
  if (five_bits) SetCodes(out, 32, [&](int i) { return out.codes[i] | (Byte(fifth, i) >> group & 1) << 4; });
}

// Reads a group (16 values) of Q6_K. Block: low 4 bits of the codes[128] | upper 2 bits[64] | int8 scales[16] | f16
// scale. Half a block (four rows of 32 values) has 64 bytes of low bits and 32 bytes of upper bits. Rows 0 and 1 are
// the low halves of the 64 bytes, rows 2 and 3 the high halves. Row r has bits 2r and 2r + 1 of each upper byte.
void ReadQ6KGroup(const std::byte* block, int group, CodeGroup& out) {
  const ptrdiff_t half = group / 8;
  const ptrdiff_t row = group % 8 / 2;
  const ptrdiff_t first = group % 2 == 0 ? 0 : 16;
  const std::byte* const low = block + half * 64 + row % 2 * 32 + first;
  const std::byte* const upper = block + 128 + half * 32 + first;
  SetCodes(out, 16, [=](int i) {
    const int four = row < 2 ? Low(low, i) : High(low, i);
    return (four | (Byte(upper, i) >> (2 * row) & 3) << 4) - 32;
  });
  out.scale = ReadHalf(block + 208) * static_cast<float>(std::bit_cast<int8_t>(block[192 + group]));
}

}  // namespace

GroupShape GroupShapeOf(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K: return {.values = 32, .has_minimum = true};
    case TensorType::kQ6_K: return {.values = 16, .has_minimum = false};
    default: return {.values = 32, .has_minimum = false};
  }
}

void ReadCodeGroup(TensorType type, const std::byte* blocks, size_t group, CodeGroup& out) {
  const TensorTypeInfo info = InfoOf(type);
  const size_t groups_per_block = info.block_values / GroupShapeOf(type).values;
  const std::byte* const block = blocks + group / groups_per_block * info.block_bytes;
  const int group_of_block = static_cast<int>(group % groups_per_block);
  out.minimum = 0;
  switch (type) {
    case TensorType::kQ8_0:  // f16 scale | int8 codes[32]
      out.scale = ReadHalf(block);
      std::memcpy(out.codes.data(), block + 2, 32);
      return;
    case TensorType::kQ4_0:  // f16 scale | codes[16]
      out.scale = ReadHalf(block);
      return ReadFourBits(block + 2, 8, out);
    case TensorType::kQ4_1:  // f16 scale | f16 minimum | codes[16]
      out.scale = ReadHalf(block);
      out.minimum = ReadHalf(block + 2);
      return ReadFourBits(block + 4, 0, out);
    case TensorType::kQ5_0:  // f16 scale | fifth bits, uint32 | codes[16]
      out.scale = ReadHalf(block);
      return ReadFiveBits(block + 2, block + 6, 16, out);
    case TensorType::kQ5_1:  // f16 scale | f16 minimum | fifth bits, uint32 | codes[16]
      out.scale = ReadHalf(block);
      out.minimum = ReadHalf(block + 2);
      return ReadFiveBits(block + 4, block + 8, 0, out);
    case TensorType::kQ4_K: return ReadKGroup(block, group_of_block, /*five_bits=*/false, out);
    case TensorType::kQ5_K: return ReadKGroup(block, group_of_block, /*five_bits=*/true, out);
    case TensorType::kQ6_K: return ReadQ6KGroup(block, group_of_block, out);
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16: return;  // not quantized
  }
}

}  // namespace baton
