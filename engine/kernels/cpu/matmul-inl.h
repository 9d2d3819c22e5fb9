// SPDX-License-Identifier: Apache-2.0
// out = x w^T on packed panels of floats.
//
// Each output element is one chain of Fma from zero in order of the inputs, in all variants below. Between blocks of
// inputs, the chain's f32 value is stored unrounded. Neither the variant nor the number of rows changes the bits.
//
//   1 or 2 rows  reads each panel once, front to back; several panels at a time, to have enough chains in flight
//   few rows     packs the rows in reading order, then multiplies them by one panel after the other
//   many rows    as few rows, but in shorter blocks, so that a panel's slice stays in cache; widens each slice to f32
//
// Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008.
#pragma once

#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

template <typename V>
struct MatMulShape {
  static constexpr int kVectors = V::kPanelVectors;    // per panel and input
  static constexpr int kPanel = kVectors * V::kLanes;  // outputs
  static constexpr int kRows = V::kTileRows;           // rows of the largest register tile
  static constexpr int kChains = 8;                    // independent sums, enough to hide the latency of an Fma
  // Blocks of x: many rows of few inputs, or few rows of many inputs. kRowBlock is a multiple of kRows, so tiles are
  // full.
  static constexpr int kRowBlock = 256 / kRows * kRows;
  static constexpr int kInputBlock = 256;
  static constexpr int kFewRows = 4 * kRows;
  static constexpr int kFewRowsInputBlock = 2048;
  static constexpr size_t kPackedRows = size_t(kRowBlock) * kInputBlock;
  static constexpr size_t kWidePanel = size_t(kInputBlock) * kPanel;
  static constexpr size_t kEdgeTile = size_t(kRowBlock) * kPanel;
  static_assert(size_t(kFewRows) * kFewRowsInputBlock <= kPackedRows);
  static constexpr size_t kScratch = kPackedRows + kWidePanel + kEdgeTile;
};

// Addressing of a register tile's operands. Element (row, input) of x is x[row * row_stride + input * input_stride].
// The weights of `input` in panel p begin at weights[p * panel_stride + input * input_stride].
struct RowStrides {
  size_t row;
  size_t input;
};
struct PanelStrides {
  size_t panel;
  size_t input;
};

// Multiplies kRows rows by kPanels whole panels over `inputs` inputs. If `resume`, the chains start from `c`.
template <typename V, typename T, int kRows, int kPanels>
void Tile(const T* weights, PanelStrides panels, int inputs, const float* x, RowStrides rows, bool resume, float* c,
          size_t c_stride) {
  constexpr int kVectors = V::kPanelVectors;
  constexpr int kWidth = kPanels * kVectors;
  V sums[kRows][kWidth];
  BATON_UNROLL for (int r = 0; r < kRows; ++r) {
    BATON_UNROLL for (int v = 0; v < kWidth; ++v) {
      sums[r][v] = resume ? V::Load(c + r * c_stride + v * V::kLanes) : V::Zero();
    }
  }
  for (int i = 0; i < inputs; ++i) {
    V w[kWidth];
    BATON_UNROLL for (int p = 0; p < kPanels; ++p) {
      BATON_UNROLL for (int v = 0; v < kVectors; ++v) {
        w[p * kVectors + v] = V::Load(weights + p * panels.panel + v * V::kLanes);
      }
    }
    BATON_UNROLL for (int r = 0; r < kRows; ++r) {
      const V value = V::Set(x[r * rows.row]);
      BATON_UNROLL for (int v = 0; v < kWidth; ++v) sums[r][v] = V::Fma(value, w[v], sums[r][v]);
    }
    weights += panels.input;
    x += rows.input;
  }
  BATON_UNROLL for (int r = 0; r < kRows; ++r) {
    BATON_UNROLL for (int v = 0; v < kWidth; ++v) sums[r][v].Store(c + r * c_stride + v * V::kLanes);
  }
}

// Calls Tile<count, kPanels> for a `count` known at run time, at most kMaxRows.
template <typename V, typename T, int kPanels, int kMaxRows>
BATON_INLINE void TileOfRows(int count, const T* weights, PanelStrides panels, int inputs, const float* x,
                             RowStrides rows, bool resume, float* c, size_t c_stride) {
  if constexpr (kMaxRows > 1) {
    if (count < kMaxRows) {
      TileOfRows<V, T, kPanels, kMaxRows - 1>(count, weights, panels, inputs, x, rows, resume, c, c_stride);
      return;
    }
  }
  Tile<V, T, kMaxRows, kPanels>(weights, panels, inputs, x, rows, resume, c, c_stride);
}

template <typename V>
void CopyTile(const float* from, size_t from_stride, int rows, int cols, float* to, size_t to_stride) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) to[r * to_stride + c] = from[r * from_stride + c];
  }
}

// Multiplies whole panels from `begin` on, kPanels at a time, while that many are left. All rows must fit one tile.
// Returns the first panel left over.
template <typename V, typename T, int kPanels>
int StreamPanels(const MatMulTask& task, int begin) {
  using Shape = MatMulShape<V>;
  constexpr int kRows =
      Shape::kChains / (kPanels * Shape::kVectors) > 1 ? Shape::kChains / (kPanels * Shape::kVectors) : 1;
  const size_t panel_size = size_t(task.inputs) * Shape::kPanel;
  int panel = begin;
  for (; panel + kPanels <= task.panel_end && (panel + kPanels) * Shape::kPanel <= task.outputs; panel += kPanels) {
    TileOfRows<V, T, kPanels, kRows>(task.rows, static_cast<const T*>(task.panels) + panel * panel_size,
                                     {panel_size, Shape::kPanel}, task.inputs, task.x, {size_t(task.inputs), 1}, false,
                                     task.out + panel * Shape::kPanel, task.out_stride);
  }
  return panel;
}

// Packs x[rows, inputs] in the order that register tiles read: [tile][input][row of the tile].
template <typename V>
void PackRows(const float* x, size_t x_stride, int rows, int inputs, int tile_rows, float* packed) {
  for (int row = 0; row < rows; row += tile_rows) {
    const int count = rows - row < tile_rows ? rows - row : tile_rows;
    for (int i = 0; i < inputs; ++i) {
      for (int r = 0; r < count; ++r) packed[i * tile_rows + r] = x[(row + r) * x_stride + i];
    }
    packed += size_t(inputs) * tile_rows;
  }
}

template <typename V, typename T>
void WidenPanel(const T* panel, int inputs, float* wide) {
  for (int i = 0; i < inputs * V::kPanelVectors; ++i) V::Load(panel + i * V::kLanes).Store(wide + i * V::kLanes);
}

// Multiplies a slice of one panel by packed rows.
template <typename V, typename T>
void PanelTimesRows(const T* slice, int inputs, const float* packed, int rows, int tile_rows, bool resume, float* c,
                    size_t c_stride) {
  using Shape = MatMulShape<V>;
  for (int row = 0; row < rows; row += tile_rows) {
    const int count = rows - row < tile_rows ? rows - row : tile_rows;
    TileOfRows<V, T, 1, Shape::kRows>(count, slice, {0, Shape::kPanel}, inputs, packed + size_t(row) * inputs,
                                      {1, size_t(tile_rows)}, resume, c + row * c_stride, c_stride);
  }
}

// Multiplies at most kRowBlock rows from `row` by the panels from `panel_begin` on.
template <typename V, typename T>
void BlockedMatMul(const MatMulTask& task, int panel_begin, int row, int rows) {
  using Shape = MatMulShape<V>;
  float* const packed = task.scratch;
  float* const wide = packed + Shape::kPackedRows;
  float* const edge = wide + Shape::kWidePanel;
  // Tiles of equal height: a low tile has too few chains to hide the latency of an Fma.
  const int tiles = (rows + Shape::kRows - 1) / Shape::kRows;
  const int tile_rows = (rows + tiles - 1) / tiles;
  const bool many = rows > Shape::kFewRows;
  const int input_block = many ? Shape::kInputBlock : Shape::kFewRowsInputBlock;
  for (int input = 0; input < task.inputs; input += input_block) {
    const int inputs = task.inputs - input < input_block ? task.inputs - input : input_block;
    const bool last = input + inputs == task.inputs;
    PackRows<V>(task.x + row * size_t(task.inputs) + input, task.inputs, rows, inputs, tile_rows, packed);
    for (int panel = panel_begin; panel < task.panel_end; ++panel) {
      const T* const slice = static_cast<const T*>(task.panels) + (size_t(panel) * task.inputs + input) * Shape::kPanel;
      const int first_output = panel * Shape::kPanel;
      float* const out = task.out + row * task.out_stride + first_output;
      // The last panel may reach past the row's end; `edge` then takes the tile.
      const bool whole = first_output + Shape::kPanel <= task.outputs;
      float* const c = whole ? out : edge;
      const size_t c_stride = whole ? task.out_stride : size_t(Shape::kPanel);
      if (many && sizeof(T) < sizeof(float)) {
        WidenPanel<V>(slice, inputs, wide);
        PanelTimesRows<V>(wide, inputs, packed, rows, tile_rows, input > 0, c, c_stride);
      } else {
        PanelTimesRows<V>(slice, inputs, packed, rows, tile_rows, input > 0, c, c_stride);
      }
      if (!whole && last) CopyTile<V>(edge, c_stride, rows, task.outputs - first_output, out, task.out_stride);
    }
  }
}

template <typename V, typename T>
void MatMul(const MatMulTask& task) {
  using Shape = MatMulShape<V>;
  int panel = task.panel_begin;
  if (task.rows == 1) panel = StreamPanels<V, T, Shape::kChains / Shape::kVectors>(task, panel);
  if (task.rows <= 2) panel = StreamPanels<V, T, Shape::kChains / Shape::kVectors / 2>(task, panel);
  if (panel == task.panel_end) return;
  for (int row = 0; row < task.rows; row += Shape::kRowBlock) {
    BlockedMatMul<V, T>(task, panel, row, task.rows - row < Shape::kRowBlock ? task.rows - row : Shape::kRowBlock);
  }
}

}  // namespace baton::cpu
