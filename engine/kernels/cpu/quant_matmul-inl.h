// SPDX-License-Identifier: Apache-2.0
// out = x w^T with x and w as small integers with float scales.
//
// An output element is computed in this order, in every tile, so that the number of rows does not change the bits:
//   1. the exact integer sum of a group's products;
//   2. times the weights' scale of the group, added up over kScaleInputs inputs;
//   3. times the activations' scale, added up over all inputs.
//
// Rows are multiplied in blocks that fit the second-level cache. Few rows are one block: the weights are read once,
// front to back. With many rows, each panel is read from memory once per block.
#pragma once

#include "engine/kernels/cpu/prepare-inl.h"

namespace baton::cpu {

// Multiplies kRows prepared rows by one panel into c.
template <typename V, PanelFormat kFormat, int kRows>
void QuantTileProduct(const std::byte* panel, int inputs, std::byte* prepared, float* c, size_t c_stride) {
  using Format = QuantFormat<kFormat>;
  using Ints = typename V::Ints;
  constexpr int kVectors = V::kPanelVectors;
  constexpr int kPanel = kVectors * V::kLanes;
  constexpr int kFours = Format::kGroup / 4;
  constexpr int kGroupsPerScale = kScaleInputs / Format::kGroup;
  const QuantTile<V, kFormat> tile(prepared, kRows, inputs);
  const std::byte* x = tile.values;
  const int32_t* sums = tile.sums;
  const int groups = QuantTile<V, kFormat>::Groups(inputs);

  for (int group = 0; group < groups;) {
    const int end = group + kGroupsPerScale < groups ? group + kGroupsPerScale : groups;
    const float* const scales = tile.scales + group / kGroupsPerScale * kRows;
    const bool first = group == 0;
    V scaled[kRows][kVectors];
    BATON_UNROLL for (int r = 0; r < kRows; ++r) {
      BATON_UNROLL for (int v = 0; v < kVectors; ++v) scaled[r][v] = V::Zero();
    }
    for (; group < end; ++group) {
      Ints dots[kRows][kVectors];
      BATON_UNROLL for (int r = 0; r < kRows; ++r) {
        const Ints start = Format::kHasMin ? Ints::Zero() : Ints::Broadcast(sums + r);
        BATON_UNROLL for (int v = 0; v < kVectors; ++v) dots[r][v] = start;
      }
      constexpr int kSteps = Format::kFourBits ? kFours / 2 : kFours;
      BATON_UNROLL for (int step = 0; step < kSteps; ++step) {
        typename V::Bytes w[kVectors];
        BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
          w[v] = V::LoadBytes(panel + size_t(step * kVectors + v) * V::kLanes * 4);
        }
        if constexpr (Format::kFourBits) {
          typename V::Bytes high[kVectors];
          BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
            high[v] = V::HighNibbles(w[v]);
            w[v] = V::LowNibbles(w[v]);
          }
          BATON_UNROLL for (int r = 0; r < kRows; ++r) {
            const auto four = V::LoadFour(x + ((step + kSteps) * kRows + r) * V::kFourBytes);
            BATON_UNROLL for (int v = 0; v < kVectors; ++v) dots[r][v] = V::AddProducts(dots[r][v], high[v], four);
          }
        }
        BATON_UNROLL for (int r = 0; r < kRows; ++r) {
          const auto four = V::LoadFour(x + (step * kRows + r) * V::kFourBytes);
          BATON_UNROLL for (int v = 0; v < kVectors; ++v) dots[r][v] = V::AddProducts(dots[r][v], w[v], four);
        }
      }
      panel += size_t{Format::kCodeBytes} * kPanel;
      BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
        const V scale = V::Load(reinterpret_cast<const F16*>(panel) + v * V::kLanes);
        BATON_UNROLL for (int r = 0; r < kRows; ++r) {
          scaled[r][v] = V::Fma(dots[r][v].ToFloats(), scale, scaled[r][v]);
        }
      }
      panel += sizeof(F16) * kPanel;
      if constexpr (Format::kHasMin) {
        BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
          const V min = V::Load(reinterpret_cast<const F16*>(panel) + v * V::kLanes);
          BATON_UNROLL for (int r = 0; r < kRows; ++r) {
            scaled[r][v] = V::Fma(V::Set(reinterpret_cast<const float*>(sums)[r]), min, scaled[r][v]);
          }
        }
        panel += sizeof(F16) * kPanel;
      }
      sums += kRows;
      x += size_t{kFours} * kRows * V::kFourBytes;
    }
    BATON_UNROLL for (int r = 0; r < kRows; ++r) {
      const V scale = V::Set(scales[r]);
      BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
        float* const place = c + r * c_stride + v * V::kLanes;
        V::Fma(scaled[r][v], scale, first ? V::Zero() : V::Load(place)).Store(place);
      }
    }
  }
}

// Calls QuantTileProduct for a number of rows known at run time, at most kMaxRows.
template <typename V, PanelFormat kFormat, int kMaxRows>
BATON_INLINE void QuantTileOfRows(int rows, const std::byte* panel, int inputs, std::byte* prepared, float* c,
                                  size_t c_stride) {
  if constexpr (kMaxRows > 1) {
    if (rows < kMaxRows) {
      QuantTileOfRows<V, kFormat, kMaxRows - 1>(rows, panel, inputs, prepared, c, c_stride);
      return;
    }
  }
  QuantTileProduct<V, kFormat, kMaxRows>(panel, inputs, prepared, c, c_stride);
}

template <typename V, PanelFormat kFormat>
void QuantMatMul(const MatMulTask& task) {
  using Format = QuantFormat<kFormat>;
  using Tile = QuantTile<V, kFormat>;
  constexpr int kPanel = V::kPanelVectors * V::kLanes;
  const size_t row_bytes = Tile::RowBytes(task.inputs);
  const size_t panel_bytes = size_t(Tile::Groups(task.inputs)) * Format::kGroupBytes * kPanel;
  const auto* const panels = static_cast<const std::byte*>(task.panels);
  const int tiles_per_block = static_cast<int>(kPreparedRowBlockBytes / (row_bytes * task.tile_rows));
  const int block = (tiles_per_block > 1 ? tiles_per_block : 1) * task.tile_rows;
  for (int begin = 0; begin < task.rows; begin += block) {
    const int end = begin + block < task.rows ? begin + block : task.rows;
    for (int p = task.panel_begin; p < task.panel_end; ++p) {
      const int output = p * kPanel;
      const bool whole = output + kPanel <= task.outputs;
      for (int row = begin; row < end; row += task.tile_rows) {
        const int rows = end - row < task.tile_rows ? end - row : task.tile_rows;
        float* const out = task.out + row * task.out_stride + output;
        float edge[V::kQuantRows * kPanel];
        QuantTileOfRows<V, kFormat, V::kQuantRows>(rows, panels + p * panel_bytes, task.inputs,
                                                   task.prepared + row * row_bytes, whole ? out : edge,
                                                   whole ? task.out_stride : size_t{kPanel});
        if (!whole) CopyTile<V>(edge, kPanel, rows, task.outputs - output, out, task.out_stride);
      }
    }
  }
}

}  // namespace baton::cpu
