// How weights stand in the panels that the matmul kernels read: the outputs of a matrix side by side, a fixed number of
// them to a panel, each panel read front to back.
//
// Kernels include this: see kernel_table.h for what may be in here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::cpu {

enum class PanelFormat : uint8_t {
  kF32,        // [input][output of the panel]
  kF16,        // likewise
  kBF16,       // likewise
  kBF16Pairs,  // [input / 2][output][2]: for products of pairs; an odd last input is paired with 0
  // Groups of inputs, each
  //   [input / 4][output][4] codes, [output] scales in F16, [output] minima in F16 if the format has them.
  // 4-bit codes: two such fours share the bytes of one, the first half of the group in the low bits.
  kInt8,      // (code - 128) scale
  kInt8Fine,  // likewise, in smaller groups
  kInt8Min,   // code scale + minimum
  kInt4,      // (code - 8) scale
  kInt4Min,   // code scale + minimum
};
inline constexpr int kPanelFormats = 9;

template <PanelFormat kFormat>
struct QuantFormat {
  static constexpr bool kFourBits = kFormat == PanelFormat::kInt4 || kFormat == PanelFormat::kInt4Min;
  static constexpr bool kHasMin = kFormat == PanelFormat::kInt8Min || kFormat == PanelFormat::kInt4Min;
  static constexpr int kGroup = kFormat == PanelFormat::kInt8Fine ? 16 : 32;                  // inputs
  static constexpr int kZero = kHasMin ? 0 : kFourBits ? 8 : 128;                             // the code of 0
  static constexpr int kCodeBytes = kFourBits ? kGroup / 2 : kGroup;                          // of one output's group
  static constexpr int kGroupBytes = kCodeBytes + (kHasMin ? 2 : 1) * int{sizeof(uint16_t)};  // likewise
};

// Activations share one scale over this many inputs, counted from the first: whole groups of every format.
inline constexpr int kScaleInputs = 128;

}  // namespace baton::cpu
