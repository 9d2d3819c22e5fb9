// Activations as the products with quantized or paired weights read them.
//
// Rows are prepared tile by tile: the rows of one register tile together, so that a kernel reads them front to back. A
// row is prepared from its own values alone, whatever tile it is in.
#pragma once

#include "engine/kernels/cpu/panel_format.h"
#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

// Of prepared rows that meet a panel before the next one comes: both must fit the second-level cache, which another
// thread may share.
inline constexpr size_t kPreparedRowBlockBytes = 256 << 10;

// Of a quantized tile: [fours of inputs][row][4 values], then one int32 per group and row ([group][row]), then one
// float per kScaleInputs inputs and row. The int32: what the codes' zero adds up to, to be added to the products of
// codes; with minima, the float sum of the group's values instead.
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

// The largest magnitude; NaN if there is one.
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

// Puts one row, the `row`-th of the tile, in its places.
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
