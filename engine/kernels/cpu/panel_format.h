// SPDX-License-Identifier: Apache-2.0
// Layout of packed weights. A panel holds a fixed number of adjacent outputs; kernels read each panel front to back.
//
// Kernels include this header: kernel_table.h lists the restrictions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::cpu {

enum class PanelFormat : uint8_t {
  kF32,        // [input][output of the panel]
  kF16,        // as kF32
  kBF16,       // as kF32
  kBF16Pairs,  // [input / 2][output][2]; an odd last input is paired with 0
  // Quantized formats consist of groups of inputs. A group is
  //   [input / 4][output][4] codes, [output] scales in F16, [output] minima in F16 if the format has minima.
  // Four-bit formats store the first half of a group's inputs in the low bits, the second half in the high bits.
  kInt8,      // (code - 128) * scale
  kInt8Fine,  // (code - 128) * scale, in groups of 16
  kInt8Min,   // code * scale + minimum
  kInt4,      // (code - 8) * scale
  kInt4Min,   // code * scale + minimum
};
inline constexpr int kPanelFormats = 9;

template <PanelFormat kFormat>
struct QuantFormat {
  static constexpr bool kFourBits = kFormat == PanelFormat::kInt4 || kFormat == PanelFormat::kInt4Min;
  static constexpr bool kHasMin = kFormat == PanelFormat::kInt8Min || kFormat == PanelFormat::kInt4Min;
  static constexpr int kGroup = kFormat == PanelFormat::kInt8Fine ? 16 : 32;                  // inputs
  static constexpr int kZero = kHasMin ? 0 : kFourBits ? 8 : 128;                             // the code of 0
  static constexpr int kCodeBytes = kFourBits ? kGroup / 2 : kGroup;                          // per output and group
  static constexpr int kGroupBytes = kCodeBytes + (kHasMin ? 2 : 1) * int{sizeof(uint16_t)};  // per output and group
};

// Activations share one scale over this many inputs, counted from the first input. A multiple of every kGroup.
inline constexpr int kScaleInputs = 128;

}  // namespace baton::cpu
