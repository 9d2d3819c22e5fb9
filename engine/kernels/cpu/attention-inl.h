// Causal attention over KV pages, one task at a time, with softmax in one pass (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; tiled as in Dao et al., "FlashAttention", 2022).
//
// Tokens are taken in blocks of kBlockTokens counted from position 0, in order. A query sees of its last block the
// tokens up to itself; what it computes depends on those alone, whichever other queries share the task: slots behind
// them, which may hold anything, are never read on its behalf. Blocks have nothing to do with pages, so that the page
// size does not show in the bits.
#pragma once

#include "engine/kernels/cpu/kv_rounding-inl.h"
#include "engine/kernels/cpu/matmul-inl.h"
#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

inline constexpr int kBlockTokens = 32;

// The parts of a task's scratch; rows are (query, head of the group), heads fastest. Vectors of head_dim are padded
// with zeros to whole panels.
template <typename V>
struct AttentionScratch {
  static constexpr size_t kPanel = MatMulShape<V>::kPanel;

  AttentionScratch(float* scratch, int rows, int head_dim)
      : width((head_dim + kPanel - 1) / kPanel * kPanel),
        keys(scratch),
        values(keys + size_t(kBlockTokens) * width),
        q(values + size_t(kBlockTokens) * width),
        sums(q + size_t(rows) * width),
        scores(sums + size_t(rows) * width),
        max(scores + size_t(rows) * kBlockTokens),
        total(max + rows) {}
  static size_t Size(int rows, int head_dim) {
    const size_t width = (head_dim + kPanel - 1) / kPanel * kPanel;
    return 2 * size_t(kBlockTokens) * width + size_t(rows) * (2 * width + kBlockTokens + 2);
  }

  size_t width;
  float* keys;    // [kBlockTokens, width]
  float* values;  // [kBlockTokens, width]
  float* q;       // [rows, width], over sqrt(head_dim)
  float* sums;    // [rows, width], of weight times value
  float* scores;  // [rows, kBlockTokens], then the weights
  float* max;     // [rows], of the scores so far
  float* total;   // [rows], of the weights so far
};

template <typename V>
void PadRow(float* to, int count, size_t width) {
  for (size_t i = (count + V::kLanes - 1) / V::kLanes * V::kLanes; i < width; i += V::kLanes) V::Zero().Store(to + i);
}

// One token's K or V, in `slot` of its page.
template <typename V, typename T>
void LoadHead(const AttentionTask& task, const std::byte* head, int slot, float* to, size_t width) {
  const T* const values = reinterpret_cast<const T*>(head) + size_t(slot) * task.head_dim;
  if constexpr (kHasScales<T>) {
    float scale;
    const std::byte* const scales = head + size_t(task.page_tokens) * task.head_dim * sizeof(T);
    __builtin_memcpy(&scale, scales + slot * sizeof(scale), sizeof(scale));
    const V factor = V::Set(scale);
    ForVectors<V>(task.head_dim,
                  [&](size_t i, int partial) { (LoadSome<V>(values + i, partial) * factor).Store(to + i); });
  } else {
    ForVectors<V>(task.head_dim, [&](size_t i, int partial) { LoadSome<V>(values + i, partial).Store(to + i); });
  }
  PadRow<V>(to, task.head_dim, width);
}

// K and V of `count` tokens from `position`.
template <typename V, typename T>
void LoadBlock(const AttentionTask& task, int position, int count, const AttentionScratch<V>& s) {
  for (int t = 0; t < count; ++t) {
    const int page = (position + t) / task.page_tokens;
    const int slot = (position + t) % task.page_tokens;
    const std::byte* const keys = task.blocks + static_cast<uint32_t>(task.pages[page]) * task.block_bytes;
    LoadHead<V, T>(task, keys, slot, s.keys + t * s.width, s.width);
    LoadHead<V, T>(task, keys + task.v_offset, slot, s.values + t * s.width, s.width);
  }
}

// scores[r][t] = q[r] . keys[t] for kRows rows and kTokens tokens, in one order of addition whatever kRows and kTokens.
template <typename V, int kRows, int kTokens>
void DotTile(const float* q, const float* keys, size_t width, float* scores) {
  V dots[kRows][kTokens];
  BATON_UNROLL for (int r = 0; r < kRows; ++r) {
    BATON_UNROLL for (int t = 0; t < kTokens; ++t) dots[r][t] = V::Zero();
  }
  for (size_t i = 0; i < width; i += V::kLanes) {
    V key[kTokens];
    BATON_UNROLL for (int t = 0; t < kTokens; ++t) key[t] = V::Load(keys + t * width + i);
    BATON_UNROLL for (int r = 0; r < kRows; ++r) {
      const V query = V::Load(q + r * width + i);
      BATON_UNROLL for (int t = 0; t < kTokens; ++t) dots[r][t] = V::Fma(query, key[t], dots[r][t]);
    }
  }
  BATON_UNROLL for (int r = 0; r < kRows; ++r) {
    float* const row = scores + size_t{kBlockTokens} * r;
    if constexpr (kTokens == 1) {
      row[0] = Sum(dots[r][0]);
    } else {
      BATON_UNROLL for (int t = 0; t < kTokens; t += 4) {
        V::Sums4(dots[r][t], dots[r][t + 1], dots[r][t + 2], dots[r][t + 3], row + t);
      }
    }
  }
}

template <typename V, int kRows>
void DotRows(const float* q, const float* keys, size_t width, int tokens, float* scores) {
  constexpr int kTokens = kRows == 1 ? 8 : 4;  // enough chains in flight
  int t = 0;
  for (; t + kTokens <= tokens; t += kTokens) DotTile<V, kRows, kTokens>(q, keys + t * width, width, scores + t);
  for (; t < tokens; ++t) DotTile<V, kRows, 1>(q, keys + t * width, width, scores + t);
}

// Turns the scores of one row into weights and rescales what was summed under a smaller maximum.
template <typename V>
void SoftmaxRow(const AttentionScratch<V>& s, int row, int tokens) {
  float* const scores = s.scores + row * kBlockTokens;
  int padded = tokens;
  for (; padded % V::kLanes != 0; ++padded) scores[padded] = -__builtin_inff();
  V largest = V::Set(s.max[row]);
  for (int t = 0; t < padded; t += V::kLanes) largest = V::Max(largest, V::Load(scores + t));
  const float max = MaxLane(largest);
  V weights = V::Zero();
  for (int t = 0; t < padded; t += V::kLanes) {
    const V weight = Exp(V::Load(scores + t) - V::Set(max));
    weight.Store(scores + t);
    weights = weights + weight;
  }
  if (max != s.max[row]) {
    float rescale[V::kLanes];
    Exp(V::Set(s.max[row] - max)).Store(rescale);
    const V factor = V::Set(rescale[0]);
    float* const sums = s.sums + row * s.width;
    for (size_t i = 0; i < s.width; i += V::kLanes) (V::Load(sums + i) * factor).Store(sums + i);
    s.total[row] *= rescale[0];
    s.max[row] = max;
  }
  s.total[row] += Sum(weights);
}

// sums[row] += weights[row] values, token by token.
template <typename V>
void SumValues(const AttentionScratch<V>& s, int row, int rows, int tokens) {
  constexpr size_t kPanel = MatMulShape<V>::kPanel;
  constexpr int kRows = V::kTileRows;
  const PanelStrides panels = {kPanel, s.width};
  const RowStrides strides = {kBlockTokens, 1};
  for (const int end = row + rows; row < end; row += kRows) {
    const int count = end - row < kRows ? end - row : kRows;
    const float* const weights = s.scores + row * kBlockTokens;
    float* const sums = s.sums + row * s.width;
    size_t i = 0;
    if (count == 1) {
      for (; i + 4 * kPanel <= s.width; i += 4 * kPanel) {
        Tile<V, float, 1, 4>(s.values + i, panels, tokens, weights, strides, true, sums + i, s.width);
      }
    }
    for (; i < s.width; i += kPanel) {
      TileOfRows<V, float, 1, kRows>(count, s.values + i, panels, tokens, weights, strides, true, sums + i, s.width);
    }
  }
}

// Rows [row, row + rows) all see the first `tokens` tokens of the block.
template <typename V>
void AttendBlock(const AttentionScratch<V>& s, int row, int rows, int tokens) {
  constexpr int kRows = V::kDotRows;
  const int end = row + rows;
  int r = row;
  for (; r + kRows <= end; r += kRows) {
    DotRows<V, kRows>(s.q + r * s.width, s.keys, s.width, tokens, s.scores + r * kBlockTokens);
  }
  for (; r < end; ++r) DotRows<V, 1>(s.q + r * s.width, s.keys, s.width, tokens, s.scores + r * kBlockTokens);
  for (r = row; r < end; ++r) SoftmaxRow(s, r, tokens);
  SumValues(s, row, rows, tokens);
}

template <typename V>
void BeginAttention(const AttentionTask& task, const AttentionScratch<V>& s) {
  const V scale = V::Set(1.0f / V::Sqrt(static_cast<float>(task.head_dim)));
  for (int row = 0; row < task.queries * task.group; ++row) {
    const float* const q = task.q + row / task.group * task.q_stride + size_t(row % task.group) * task.head_dim;
    float* const scaled = s.q + row * s.width;
    ForVectors<V>(task.head_dim,
                  [&](size_t i, int partial) { (LoadSome<V>(q + i, partial) * scale).Store(scaled + i); });
    PadRow<V>(scaled, task.head_dim, s.width);
    for (size_t i = 0; i < s.width; i += V::kLanes) V::Zero().Store(s.sums + row * s.width + i);
    s.max[row] = -__builtin_inff();
    s.total[row] = 0;
  }
}

template <typename V>
void EndAttention(const AttentionTask& task, const AttentionScratch<V>& s) {
  for (int row = 0; row < task.queries * task.group; ++row) {
    float* const out = task.out + row / task.group * task.out_stride + size_t(row % task.group) * task.head_dim;
    const V total = V::Set(s.total[row]);
    ForVectors<V>(task.head_dim, [&](size_t i, int partial) {
      StoreSome(V::Load(s.sums + row * s.width + i) / total, out + i, partial);
    });
  }
}

template <typename V, typename T>
void Attention(const AttentionTask& task) {
  const AttentionScratch<V> s(task.scratch, task.queries * task.group, task.head_dim);
  BeginAttention(task, s);
  const int end = task.start_position + task.queries;
  for (int block = 0; block < end; block += kBlockTokens) {
    LoadBlock<V, T>(task, block, end - block < kBlockTokens ? end - block : kBlockTokens, s);
    // Queries before the block's last token see a part of it, each a different one; those from there on see all of it.
    int query = block > task.start_position ? block - task.start_position : 0;
    for (; query < task.queries && task.start_position + query < block + kBlockTokens - 1; ++query) {
      AttendBlock(s, query * task.group, task.group, task.start_position + query - block + 1);
    }
    AttendBlock(s, query * task.group, (task.queries - query) * task.group, kBlockTokens);
  }
  EndAttention(task, s);
}

template <typename V>
size_t AttentionScratchSize(int rows, int head_dim) {
  return AttentionScratch<V>::Size(rows, head_dim);
}

}  // namespace baton::cpu
