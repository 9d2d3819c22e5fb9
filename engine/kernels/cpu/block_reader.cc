#include "engine/kernels/cpu/block_reader.h"

#include <bit>
#include <cstring>

#include "engine/formats/half.h"

namespace baton::cpu {
namespace {

template <PanelFormat kFormat>
constexpr QuantShape Shape() {
  using Format = QuantFormat<kFormat>;
  return {.group_inputs = Format::kGroup,
          .zero = Format::kZero,
          .four_bits = Format::kFourBits,
          .has_min = Format::kHasMin};
}

float ReadF16(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return HalfToFloat(bits);
}

uint8_t Byte(const std::byte* p, int i) { return std::to_integer<uint8_t>(p[i]); }

// 32 codes of 4 bits: the low halves of 16 bytes, then the high ones.
void ReadNibbles(const std::byte* bytes, WeightGroup& out) {
  for (int i = 0; i < 16; ++i) {
    out.codes[i] = Byte(bytes, i) & 0x0f;
    out.codes[i + 16] = Byte(bytes, i) >> 4;
  }
}

// One more bit for each of 32 codes.
void AddFifthBits(const std::byte* bytes, WeightGroup& out) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  for (int i = 0; i < 32; ++i) out.codes[i] |= ((bits >> i) & 1) << 4;
}

// Of the eight groups of a superblock: 6-bit factors of the scale and of the minimum, packed into 12 bytes.
void ReadFactors(const std::byte* packed, int group, int& scale, int& min) {
  if (group < 4) {
    scale = Byte(packed, group) & 63;
    min = Byte(packed, group + 4) & 63;
  } else {
    scale = (Byte(packed, group + 4) & 0x0f) | (Byte(packed, group - 4) >> 6 << 4);
    min = (Byte(packed, group + 4) >> 4) | (Byte(packed, group) >> 6 << 4);
  }
}

// Q4_K and Q5_K: F16 scale, F16 minimum, factors, [32 bytes of fifth bits,] 4 x 32 bytes whose low halves are one group
// and whose high halves are the next.
void ReadKGroup(const std::byte* block, int group, bool five_bits, WeightGroup& out) {
  int scale = 0;
  int min = 0;
  ReadFactors(block + 4, group, scale, min);
  out.scale = ReadF16(block) * static_cast<float>(scale);
  out.min = -ReadF16(block + 2) * static_cast<float>(min);
  const std::byte* const fifth = block + 16;
  const std::byte* const codes = (five_bits ? fifth + 32 : fifth) + size_t(group / 2) * 32;
  for (int i = 0; i < 32; ++i) {
    out.codes[i] = group % 2 == 0 ? Byte(codes, i) & 0x0f : Byte(codes, i) >> 4;
    if (five_bits) out.codes[i] |= ((Byte(fifth, i) >> group) & 1) << 4;
  }
}

// Q6_K: 128 bytes of low halves, 64 bytes of two high bits each, 16 8-bit factors, F16 scale. Each half of the block
// holds four runs of 32 codes.
void ReadQ6KGroup(const std::byte* block, int group, WeightGroup& out) {
  const int half = group / 8;
  const int run = group % 8 / 2;
  const int first = group % 2 * 16;
  const std::byte* const low = block + size_t(half) * 64 + size_t(run % 2) * 32 + first;
  const std::byte* const high = block + 128 + size_t(half) * 32 + first;
  for (int i = 0; i < 16; ++i) {
    const int four = run < 2 ? Byte(low, i) & 0x0f : Byte(low, i) >> 4;
    const int two = (Byte(high, i) >> (2 * run)) & 3;
    out.codes[i] = static_cast<uint8_t>((four | two << 4) - 32 + 128);
  }
  out.scale = ReadF16(block + 208) * static_cast<float>(std::bit_cast<int8_t>(Byte(block, 192 + group)));
}

}  // namespace

QuantShape ShapeOf(PanelFormat format) {
  switch (format) {
    case PanelFormat::kInt8Fine:
      return Shape<PanelFormat::kInt8Fine>();
    case PanelFormat::kInt8Min:
      return Shape<PanelFormat::kInt8Min>();
    case PanelFormat::kInt4:
      return Shape<PanelFormat::kInt4>();
    case PanelFormat::kInt4Min:
      return Shape<PanelFormat::kInt4Min>();
    default:
      return Shape<PanelFormat::kInt8>();
  }
}

PanelFormat FormatFor(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0:
      return PanelFormat::kInt4;
    case TensorType::kQ4_1:
    case TensorType::kQ4_K:
      return PanelFormat::kInt4Min;
    case TensorType::kQ5_1:
    case TensorType::kQ5_K:
      return PanelFormat::kInt8Min;
    case TensorType::kQ6_K:
      return PanelFormat::kInt8Fine;
    default:
      return PanelFormat::kInt8;  // Q8_0, Q5_0
  }
}

void ReadGroup(TensorType type, const std::byte* row, int group, WeightGroup& out) {
  const TensorTypeInfo info = InfoOf(type);
  const int groups_per_block = info.block_values / ShapeOf(FormatFor(type)).group_inputs;
  const std::byte* const block = row + size_t(group / groups_per_block) * info.block_bytes;
  const int group_of_block = group % groups_per_block;
  out.min = 0;
  switch (type) {
    case TensorType::kQ8_0:
      out.scale = ReadF16(block);
      for (int i = 0; i < 32; ++i) out.codes[i] = Byte(block, 2 + i) ^ 0x80;
      return;
    case TensorType::kQ4_0:
      out.scale = ReadF16(block);
      return ReadNibbles(block + 2, out);
    case TensorType::kQ4_1:
      out.scale = ReadF16(block);
      out.min = ReadF16(block + 2);
      return ReadNibbles(block + 4, out);
    case TensorType::kQ5_0:
      out.scale = ReadF16(block);
      ReadNibbles(block + 6, out);
      AddFifthBits(block + 2, out);
      for (uint8_t& code : out.codes) code += 128 - 16;
      return;
    case TensorType::kQ5_1:
      out.scale = ReadF16(block);
      out.min = ReadF16(block + 2);
      ReadNibbles(block + 8, out);
      return AddFifthBits(block + 4, out);
    case TensorType::kQ4_K:
      return ReadKGroup(block, group_of_block, /*five_bits=*/false, out);
    case TensorType::kQ5_K:
      return ReadKGroup(block, group_of_block, /*five_bits=*/true, out);
    case TensorType::kQ6_K:
      return ReadQ6KGroup(block, group_of_block, out);
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return;  // have no groups
  }
}

}  // namespace baton::cpu
