// The quantized blocks of ggml (https://github.com/ggml-org/ggml) taken apart: groups of integer codes that share a
// scale and perhaps a minimum. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/types.h"

namespace baton {

// What a group of a quantized type looks like; blocks hold whole groups.
struct GroupShape {
  int values = 0;
  bool has_minimum = false;
};
GroupShape GroupShapeOf(TensorType type);

inline constexpr int kMaxGroupValues = 32;

// value = scale code + minimum.
struct CodeGroup {
  std::array<int8_t, kMaxGroupValues> codes;  // the first GroupShape::values count
  float scale;
  float minimum;  // 0 of types that have none
};

// The `group`-th group of the quantized blocks that begin at `blocks`, at any alignment. Types with two levels of
// scales (Q4_K, Q5_K, Q6_K) give the product of both.
void ReadCodeGroup(TensorType type, const std::byte* blocks, size_t group, CodeGroup& out);

}  // namespace baton
