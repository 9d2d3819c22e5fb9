// SPDX-License-Identifier: Apache-2.0
// out = x w^T with weights and activations in BF16. An instruction adds the products of a pair of inputs to an f32
// sum.
//
// Each output element is one chain over the pairs of inputs in order. The number of rows does not change the bits.
#pragma once

#include "engine/kernels/cpu/prepare-inl.h"

namespace baton::cpu {

// A prepared tile is [pair of inputs][row][2 values in BF16].
inline constexpr int kPairBytes = 4;

template <typename V>
size_t PairRowBytes(int inputs) {
  return size_t(inputs + 1) / 2 * kPairBytes;
}

template <typename V>
void RoundTileToPairs(const float* x, size_t x_stride, int rows, int inputs, std::byte* out) {
  constexpr int kBlock = 4 * V::kLanes;
  for (int row = 0; row < rows; ++row) {
    for (int first = 0; first < inputs; first += kBlock) {
      const int count = inputs - first < kBlock ? inputs - first : kBlock;
      BF16 rounded[kBlock] = {};
      ForVectors<V>(count, [&](size_t i, int partial) {
        StoreSome(LoadSome<V>(x + row * x_stride + first + i, partial), rounded + i, partial);
      });
      for (int i = 0; i < count; i += 2) {
        __builtin_memcpy(out + (size_t(first + i) / 2 * rows + row) * kPairBytes, rounded + i, kPairBytes);
      }
    }
  }
}

// Multiplies kRows rows by one panel into c. In x, rows are kRowStride pairs apart and the pairs of a row are
// `pair_stride` pairs apart. If `resume`, the chains start from `c`.
template <typename V, int kRowStride, int kRows>
void PairTileProduct(const std::byte* panel, int pairs, const std::byte* x, size_t pair_stride, bool resume, float* c,
                     size_t c_stride) {
  constexpr int kVectors = V::kPanelVectors;
  V sums[kRows][kVectors];
  BATON_UNROLL for (int r = 0; r < kRows; ++r) {
    BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = resume ? V::Load(c + r * c_stride + v * V::kLanes) : V::Zero();
    }
  }
  for (int pair = 0; pair < pairs; ++pair) {
    typename V::Pairs w[kVectors];
    BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
      w[v] = V::LoadPairs(panel + (size_t(pair) * kVectors + v) * V::kLanes * kPairBytes);
    }
    BATON_UNROLL for (int r = 0; r < kRows; ++r) {
      const auto both = V::BroadcastPair(x + (pair * pair_stride + size_t(r) * kRowStride) * kPairBytes);
      BATON_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v] = V::AddPairProducts(sums[r][v], w[v], both);
    }
  }
  BATON_UNROLL for (int r = 0; r < kRows; ++r) {
    BATON_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v].Store(c + r * c_stride + v * V::kLanes);
  }
}

template <typename V, int kRowStride, int kMaxRows = V::kPairRows>
BATON_INLINE void PairTileOfRows(int rows, const std::byte* panel, int pairs, const std::byte* x, size_t pair_stride,
                                 bool resume, float* c, size_t c_stride) {
  if constexpr (kMaxRows > 1) {
    if (rows < kMaxRows) {
      PairTileOfRows<V, kRowStride, kMaxRows - 1>(rows, panel, pairs, x, pair_stride, resume, c, c_stride);
      return;
    }
  }
  PairTileProduct<V, kRowStride, kMaxRows>(panel, pairs, x, pair_stride, resume, c, c_stride);
}

template <typename V>
void PairMatMul(const MatMulTask& task) {
  constexpr int kPanel = V::kPanelVectors * V::kLanes;
  const int pairs = (task.inputs + 1) / 2;
  const size_t row_bytes = PairRowBytes<V>(task.inputs);
  const size_t panel_bytes = size_t(pairs) * kPanel * kPairBytes;
  const auto* const panels = static_cast<const std::byte*>(task.panels);
  const int tiles_per_block = static_cast<int>(kPreparedRowBlockBytes / (row_bytes * task.tile_rows));
  const int block = (tiles_per_block > 1 ? tiles_per_block : 1) * task.tile_rows;
  for (int first = 0; first < task.rows; first += block) {
    const int last = first + block < task.rows ? first + block : task.rows;
    for (int p = task.panel_begin; p < task.panel_end; ++p) {
      const int output = p * kPanel;
      const bool whole = output + kPanel <= task.outputs;
      for (int row = first; row < last; row += task.tile_rows) {
        const int rows = last - row < task.tile_rows ? last - row : task.tile_rows;
        float* const out = task.out + row * task.out_stride + output;
        float edge[V::kPairRows * kPanel];
        PairTileOfRows<V, 1>(rows, panels + p * panel_bytes, pairs, task.prepared + row * row_bytes, rows, false,
                             whole ? out : edge, whole ? task.out_stride : size_t{kPanel});
        if (!whole) CopyTile<V>(edge, kPanel, rows, task.outputs - output, out, task.out_stride);
      }
    }
  }
}

}  // namespace baton::cpu
