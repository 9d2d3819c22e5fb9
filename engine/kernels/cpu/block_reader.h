// SPDX-License-Identifier: Apache-2.0
// Reads quantized blocks of a GGUF file as the panels need them: per group the codes, a scale and, for some types, a
// minimum.
//
// Codes stay as they are. Q4_K, Q5_K and Q6_K have two levels of scales: their product is rounded to F16.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/cpu/panel_format.h"
#include "engine/types.h"

namespace baton::cpu {

// Weights of one output over one group of inputs: weight = (code - zero of the format) * scale + min.
struct WeightGroup {
  std::array<uint8_t, 32> codes;  // only the first group_inputs are used
  float scale;
  float min;
};

// QuantFormat for code that learns the format at run time.
struct QuantShape {
  int group_inputs;
  int zero;  // the code of 0 in formats without minima
  bool four_bits;
  bool has_min;
  int code_bytes() const { return four_bits ? group_inputs / 2 : group_inputs; }
  int group_bytes() const { return code_bytes() + (has_min ? 4 : 2); }  // per output
};
QuantShape ShapeOf(PanelFormat format);  // quantized formats only

// Returns the format that represents every code of a quantized type.
PanelFormat FormatFor(TensorType type);

// Reads group number `group` of the row at `row`, which need not be aligned. The group size is that of FormatFor(type).
void ReadGroup(TensorType type, const std::byte* row, int group, WeightGroup& out);

}  // namespace baton::cpu
