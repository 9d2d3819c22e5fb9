// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/block_reader.h"

#include "engine/formats/code_groups.h"

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

}  // namespace

QuantShape ShapeOf(PanelFormat format) {
  switch (format) {
    case PanelFormat::kInt8Fine: return Shape<PanelFormat::kInt8Fine>();
    case PanelFormat::kInt8Min: return Shape<PanelFormat::kInt8Min>();
    case PanelFormat::kInt4: return Shape<PanelFormat::kInt4>();
    case PanelFormat::kInt4Min: return Shape<PanelFormat::kInt4Min>();
    default: return Shape<PanelFormat::kInt8>();
  }
}

PanelFormat FormatFor(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0: return PanelFormat::kInt4;
    case TensorType::kQ4_1:
    case TensorType::kQ4_K: return PanelFormat::kInt4Min;
    case TensorType::kQ5_1:
    case TensorType::kQ5_K: return PanelFormat::kInt8Min;
    case TensorType::kQ6_K: return PanelFormat::kInt8Fine;
    default: return PanelFormat::kInt8;  // Q8_0, Q5_0
  }
}

void ReadGroup(TensorType type, const std::byte* row, int group, WeightGroup& out) {
  CodeGroup codes;
  ReadCodeGroup(type, row, group, codes);
  const QuantShape shape = ShapeOf(FormatFor(type));
  for (int i = 0; i < shape.group_inputs; ++i) out.codes[i] = static_cast<uint8_t>(codes.codes[i] + shape.zero);
  out.scale = codes.scale;
  out.min = codes.minimum;
}

}  // namespace baton::cpu
