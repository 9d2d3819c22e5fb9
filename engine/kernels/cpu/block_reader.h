// Reads the quantized blocks of a GGUF file as the panels want them: codes, a scale and perhaps a minimum per group.
//
// Nothing is quantized anew. The types with two levels of scales (Q4_K, Q5_K, Q6_K) get the product of both, rounded to
// F16; other values stay as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/cpu/panel_format.h"
#include "engine/types.h"

namespace baton::cpu {

// The weights of one output over the inputs of one group: (code - zero of the format) scale + min.
struct WeightGroup {
  std::array<uint8_t, 32> codes;  // the first group_inputs count
  float scale;
  float min;
};

// What PanelFormat and QuantFormat say of a quantized format, for code that learns the format at run time.
struct QuantShape {
  int group_inputs;
  int zero;  // the code of 0 in formats without minima
  bool four_bits;
  bool has_min;
  int code_bytes() const { return four_bits ? group_inputs / 2 : group_inputs; }
  int group_bytes() const { return code_bytes() + (has_min ? 4 : 2); }  // of one output
};
QuantShape ShapeOf(PanelFormat format);  // kInt8 and those after it

// The format that takes all values of a quantized type.
PanelFormat FormatFor(TensorType type);

// The `group`-th group of a row of FormatFor(type); the row begins at `row`, which need not be aligned.
void ReadGroup(TensorType type, const std::byte* row, int group, WeightGroup& out);

}  // namespace baton::cpu
