// SPDX-License-Identifier: Apache-2.0
// Prepares activations for products with quantized weights and with pairs of BF16 weights.
//
// Rows are prepared in tiles. A tile holds the rows of one register tile, so that a kernel reads it front to back. A
// row's prepared values depend on the row alone, not on its tile.
#pragma once

#include "engine/kernels/cpu/panel_format.h"
#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

// Size of a block of prepared rows that every panel is multiplied by. A block and a panel must fit the second-level
// cache, which another thread may share.
inline constexpr size_t kPreparedRowBlockBytes = 256 << 10;

// Layout of a quantized tile:
//   values  [inputs / 4][row][4 values]
//   sums    [group][row], 4 bytes each
//   scales  [inputs / kScaleInputs][row], float
// `sums` of a format with minima: the sum of the group's values, as float. Of other formats: -zero times that sum, as
// int32, to start the dot product with.
template <typename V, PanelFormat kFormat>
struct QuantTile {
  using Format = QuantFormat<kFormat>;
  static constexpr int kFourBytes = V::kFourBytes;

  static constexpr int Groups(int inputs) { return (inputs + Format::kGroup - 1) / Format::kGroup; }
  static constexpr int Scales(int inputs) { return (inputs + kScaleInputs - 1) / kScaleInputs; }
  static constexpr size_t ValueBytes(int inputs) { return size_t(Groups(inputs)) * Format::kGroup / 4 * kFourBytes; }
  static size_t RowBytes(int inputs) {
    return ValueBytes(inputs) + size_t(Groups(inputs)) * sizeof(int32_t) + size_t(Scales(inputs)) * sizeof(float);
  }

  QuantTile(std::byte* tile, int rows, int inputs)
      : values(tile),
        sums(reinterpret_cast<int32_t*>(values + ValueBytes(inputs) * rows)),
        scales(reinterpret_cast<float*>(sums + size_t(Groups(inputs)) * rows)) {}

  std::byte* values;
  int32_t* sums;
  float* scales;
};

// Returns the largest magnitude, or NaN if x contains NaN.
template <typename V>
BATON_INLINE float LargestMagnitude(const float* x, int count) {
  V largest = V::Zero();
  ForVectors<V>(count, [&](size_t i, int partial) { largest = V::MaxMagnitude(largest, LoadSome<V>(x + i, partial)); });
  uint32_t lanes[V::kLanes];
  largest.Store(reinterpret_cast<float*>(lanes));
  uint32_t bits = 0;
  BATON_UNROLL for (int i = 0; i < V::kLanes; ++i) bits = lanes[i] > bits ? lanes[i] : bits;
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, sizeof(magnitude));
  return magnitude;
}

// Quantizes x into row number `row` of a tile of `rows` rows.
template <typename V, PanelFormat kFormat>
void QuantizeRow(const float* x, int inputs, const QuantTile<V, kFormat>& tile, int row, int rows) {
  using Format = QuantFormat<kFormat>;
  constexpr int kLargest = 127;
  for (int first = 0; first < inputs; first += kScaleInputs) {
    const int count = inputs - first < kScaleInputs ? inputs - first : kScaleInputs;
    const float magnitude = LargestMagnitude<V>(x + first, count);
    const bool zero = magnitude < 0x1p-100f;
    tile.scales[first / kScaleInputs * rows + row] = zero ? 0 : magnitude / kLargest;
    const V factor = V::Set(zero ? 0 : kLargest / magnitude);
    int8_t values[kScaleInputs] = {};
    ForVectors<V>(
        count, [&](size_t i, int partial) { (LoadSome<V>(x + first + i, partial) * factor).StoreRounded(values + i); });
    for (int begin = 0; begin < count; begin += Format::kGroup) {
      int32_t sum = 0;
      for (int i = 0; i < Format::kGroup; ++i) sum += values[begin + i];
      int32_t* const place = tile.sums + (first + begin) / Format::kGroup * rows + row;
      if constexpr (Format::kHasMin) {
        const auto exact = static_cast<float>(sum);
        __builtin_memcpy(place, &exact, sizeof(exact));
      } else {
        *place = -Format::kZero * sum;
      }
      for (int i = begin; i < begin + Format::kGroup; i += 4) {
        V::StoreFour(values + i, tile.values + ((first + i) / 4 * rows + row) * V::kFourBytes);
      }
    }
  }
}

template <typename V, PanelFormat kFormat>
void QuantizeTile(const float* x, size_t x_stride, int rows, int inputs, std::byte* out) {
  const QuantTile<V, kFormat> tile(out, rows, inputs);
  for (int row = 0; row < rows; ++row) QuantizeRow<V, kFormat>(x + row * x_stride, inputs, tile, row, rows);
}

}  // namespace baton::cpu
