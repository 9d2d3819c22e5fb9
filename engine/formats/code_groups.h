// SPDX-License-Identifier: Apache-2.0
// Reads the quantized blocks of ggml (https://github.com/ggml-org/ggml) as groups: integer codes that share one scale
// and, in some types, one minimum. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/types.h"

namespace baton {

// A block consists of whole groups.
struct GroupShape {
  int values = 0;
  bool has_minimum = false;
};
GroupShape GroupShapeOf(TensorType type);

inline constexpr int kMaxGroupValues = 32;

// value = scale * code + minimum.
struct CodeGroup {
  std::array<int8_t, kMaxGroupValues> codes;  // only the first GroupShape::values are set
  float scale;
  float minimum;  // 0 for types without minimums
};

// Reads group number `group` of a quantized row that begins at `blocks`, at any alignment. For types with two levels of
// scales (Q4_K, Q5_K, Q6_K), `scale` and `minimum` are products of both levels.
void ReadCodeGroup(TensorType type, const std::byte* blocks, size_t group, CodeGroup& out);

}  // namespace baton
