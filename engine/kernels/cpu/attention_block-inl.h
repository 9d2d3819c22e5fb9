// SPDX-License-Identifier: Apache-2.0
// A block of K and V of the attention kernel. Load reads the block from its pages once, for all rows of a task, into
// panels of the matmul kernels' layout. Score multiplies queries by K; AddValues multiplies softmax weights by V. A row
// is one query and one head of its group.
//
//   FloatBlock  multiplies in f32; takes every KV type.
//   PairBlock   multiplies pairs of BF16 and sums in f32; takes KV types that BF16 holds exactly (needs V::kHasPairs).
//
// PairBlock applies the scales of int8 and E4M3 outside of the products. A query is the sum of two BF16 values, because
// the exponential amplifies errors of a score. Softmax weights are rounded to BF16, because averaging dampens their
// errors.
//
// Each score is one chain of additions over the dimensions (PairBlock: over the query's high parts, then its low
// parts). Each result is one chain over the tokens. Other rows do not change the order. Tokens past `tokens` never
// enter a result.
#pragma once

#include "engine/kernels/cpu/kv_rounding-inl.h"
#include "engine/kernels/cpu/matmul-inl.h"
#include "engine/kernels/cpu/pair_matmul-inl.h"

namespace baton::cpu {

// K (or V) of kLanes consecutive tokens, of which the first `count` exist.
template <typename V, typename T>
struct TokenRows {
  // `offset` is the distance of K or V from task.blocks.
  TokenRows(const AttentionTask& task, const PageId* pages, size_t offset, int position, int count) : count(count) {
    for (int t = 0; t < count; ++t) {
      const int page = (position + t) / task.page_tokens;
      const int slot = (position + t) % task.page_tokens;
      const std::byte* const head = task.blocks + static_cast<uint32_t>(pages[page]) * task.block_bytes + offset;
      rows[t] = reinterpret_cast<const T*>(head) + size_t(slot) * task.head_dim;
      if constexpr (kHasScales<T>) {
        const std::byte* const scales_of_head = head + size_t(task.page_tokens) * task.head_dim * sizeof(T);
        __builtin_memcpy(&scales[t], scales_of_head + slot * sizeof(float), sizeof(float));
      }
    }
  }

  // Loads the kLanes dimensions from `dim` on, or `partial` of them if not 0. Missing tokens and dimensions read as
  // zero.
  BATON_INLINE void Load(size_t dim, int partial, V (&lanes)[V::kLanes]) const {
    if (count == V::kLanes && partial == 0) {
      BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t] = V::Load(rows[t] + dim);
    } else {
      for (int t = 0; t < V::kLanes; ++t) lanes[t] = t < count ? LoadSome<V>(rows[t] + dim, partial) : V::Zero();
    }
  }

  int count;
  const T* rows[V::kLanes] = {};
  float scales[V::kLanes] = {};  // only if kHasScales<T>
};

// Prefetches K and V of the next tokens: decoding is bound by reading them.
template <typename V, typename T>
void PrefetchTokens(const AttentionTask& task, const PageId* pages, int position, int count) {
  constexpr size_t kLine = 64;
  constexpr int kSecondLevel = 2;  // cache level: the working set fills the first level
  const size_t token_bytes = task.head_dim * sizeof(T);
  for (int t = 0; t < count;) {
    const int slot = (position + t) % task.page_tokens;
    const int here = task.page_tokens - slot < count - t ? task.page_tokens - slot : count - t;
    const std::byte* const head = task.blocks +
                                  static_cast<uint32_t>(pages[(position + t) / task.page_tokens]) * task.block_bytes +
                                  slot * token_bytes;
    for (size_t i = 0; i < here * token_bytes; i += kLine) {
      __builtin_prefetch(head + i, 0, kSecondLevel);
      __builtin_prefetch(head + task.v_offset + i, 0, kSecondLevel);
    }
    t += here;
  }
}

// Calls f(first, count) for tiles of at most kMaxRows rows and nearly equal height. A low tile has too few chains to
// hide the latency of the additions.
template <int kMaxRows, typename F>
BATON_INLINE void ForTiles(int rows, F f) {
  int tiles = (rows + kMaxRows - 1) / kMaxRows;
  for (int first = 0; first < rows; --tiles) {
    const int count = (rows - first + tiles - 1) / tiles;
    f(first, count);
    first += count;
  }
}

// head_dim rounded up to whole panels.
template <typename V>
constexpr size_t PaddedWidth(int head_dim) {
  constexpr size_t kPanel = MatMulShape<V>::kPanel;
  return (head_dim + kPanel - 1) / kPanel * kPanel;
}

template <typename V, typename T>
class FloatBlock {
  static constexpr int kPanel = MatMulShape<V>::kPanel;
  static_assert(kAttentionBlockTokens % kPanel == 0 && kPanel % V::kLanes == 0);

 public:
  using Stored = T;

  static size_t ScratchSize(int rows, int head_dim) {
    return (2 * size_t{kAttentionBlockTokens} + rows) * PaddedWidth<V>(head_dim);
  }

  FloatBlock(float* scratch, int rows, int head_dim)
      : head_dim_(head_dim),
        width_(PaddedWidth<V>(head_dim)),
        rows_(rows),
        keys_(scratch),
        values_(keys_ + kAttentionBlockTokens * width_),
        q_(values_ + kAttentionBlockTokens * width_) {}

  // Stores q * scale as a column of q_.
  void SetQuery(int row, const float* q, float scale) {
    for (int i = 0; i < head_dim_; ++i) q_[size_t(i) * rows_ + row] = q[i] * scale;
  }

  void Load(const AttentionTask& task, const PageId* pages, int position, int count) {
    for (int first = 0; first < count; first += V::kLanes) {
      const int tokens = count - first < V::kLanes ? count - first : V::kLanes;
      float* const keys = keys_ + size_t(first) / kPanel * kPanel * width_ + first % kPanel;
      const TokenRows<V, T> k(task, pages, 0, position + first, tokens);
      ForVectors<V>(head_dim_, [&](size_t dim, int partial) {
        V lanes[V::kLanes];
        LoadScaled(k, dim, partial, lanes);
        V::Transpose(lanes);
        BATON_UNROLL for (int i = 0; i < V::kLanes; ++i) lanes[i].Store(keys + (dim + i) * kPanel);
      });
      const TokenRows<V, T> v(task, pages, task.v_offset, position + first, tokens);
      float* const values = values_ + first * width_;
      for (size_t dim = 0; dim < width_; dim += V::kLanes) {
        V lanes[V::kLanes];
        BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t] = V::Zero();
        const int left = head_dim_ - static_cast<int>(dim);
        if (left > 0) LoadScaled(v, dim, left < V::kLanes ? left : 0, lanes);
        BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t].Store(values + t * width_ + dim);
      }
    }
  }

  // Writes scores[row][token] of rows [row, row + rows), for all tokens of the block.
  void Score(int row, int rows, float* scores) const {
    for (int token = 0; token < kAttentionBlockTokens; token += kPanel) {
      const float* const keys = keys_ + token * width_;
      ForTiles<V::kTileRows>(rows, [&](int first, int count) {
        TileOfRows<V, float, 1, V::kTileRows>(count, keys, {0, kPanel}, head_dim_, q_ + row + first, {1, size_t(rows_)},
                                              false, scores + size_t(row + first) * kAttentionBlockTokens + token,
                                              kAttentionBlockTokens);
      });
    }
  }

  // sums[row] += weights[row] times V of the first `tokens` tokens. May overwrite `weights`.
  void AddValues(int row, int rows, int tokens, float* weights, float* sums) const {
    for (size_t dim = 0; dim < width_; dim += kPanel) {
      ForTiles<V::kTileRows>(rows, [&](int first, int count) {
        TileOfRows<V, float, 1, V::kTileRows>(
            count, values_ + dim, {0, width_}, tokens, weights + size_t(row + first) * kAttentionBlockTokens,
            {kAttentionBlockTokens, 1}, true, sums + (row + first) * width_ + dim, width_);
      });
    }
  }

 private:
  static BATON_INLINE void LoadScaled(const TokenRows<V, T>& from, size_t dim, int partial, V (&lanes)[V::kLanes]) {
    from.Load(dim, partial, lanes);
    if constexpr (kHasScales<T>) {
      BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t] = lanes[t] * V::Set(from.scales[t]);
    }
  }

  const int head_dim_;
  const size_t width_;
  const int rows_;
  float* const keys_;    // [panel of tokens][dim][token]
  float* const values_;  // [token][width_]
  float* const q_;       // [dim][row]
};

// Needs V::kHasPairs.
template <typename V, typename T>
class PairBlock {
  static constexpr int kPanel = MatMulShape<V>::kPanel;
  static constexpr int kBlockPairs = kAttentionBlockTokens / 2;
  static_assert(kAttentionBlockTokens == kPanel);

 public:
  using Stored = T;

  static size_t ScratchSize(int rows, int head_dim) {
    const size_t width = PaddedWidth<V>(head_dim);
    return kAttentionBlockTokens * width + size_t(rows) * (width + kBlockPairs) + 2 * size_t{kAttentionBlockTokens};
  }

  PairBlock(float* scratch, int rows, int head_dim)
      : head_dim_(head_dim),
        width_(PaddedWidth<V>(head_dim)),
        rows_(rows),
        keys_(scratch),
        values_(keys_ + kAttentionBlockTokens * width_ / 2),
        key_scales_(values_ + kAttentionBlockTokens * width_ / 2),
        value_scales_(key_scales_ + kAttentionBlockTokens),
        weights_(value_scales_ + kAttentionBlockTokens),
        q_(weights_ + size_t(rows) * kBlockPairs) {}

  void SetQuery(int row, const float* q, float scale) {
    ForVectors<V>(head_dim_, [&](size_t i, int partial) {
      BF16 high[V::kLanes], low[V::kLanes];
      const V exact = LoadSome<V>(q + i, partial) * V::Set(scale);
      exact.Store(high);
      (exact - V::Load(high)).Store(low);
      for (size_t pair = i / 2; pair < i / 2 + V::kLanes / 2 && pair * 2 < size_t(head_dim_); ++pair) {
        __builtin_memcpy(q_ + pair * rows_ + row, high + (pair * 2 - i), kPairBytes);
        __builtin_memcpy(q_ + (pair + head_dim_ / 2) * rows_ + row, low + (pair * 2 - i), kPairBytes);
      }
    });
  }

  void Load(const AttentionTask& task, const PageId* pages, int position, int count) {
    for (int first = 0; first < count; first += V::kLanes) {
      const int tokens = count - first < V::kLanes ? count - first : V::kLanes;
      const TokenRows<V, T> k(task, pages, 0, position + first, tokens);
      LoadKeys(k, first);
      const TokenRows<V, T> v(task, pages, task.v_offset, position + first, tokens);
      LoadValues(v, first);
      if constexpr (kHasScales<T>) {
        V::Load(k.scales).Store(key_scales_ + first);
        V::Load(v.scales).Store(value_scales_ + first);
      }
    }
  }

  void Score(int row, int rows, float* scores) const {
    const int pairs = head_dim_ / 2;
    ForTiles<V::kPairRows>(rows, [&](int first, int count) {
      float* const to = scores + size_t(row + first) * kAttentionBlockTokens;
      for (int half = 0; half < 2; ++half) {
        const float* const q = q_ + size_t(half) * pairs * rows_ + row + first;
        PairTileOfRows<V, 1>(count, Bytes(keys_), pairs, Bytes(q), rows_, half != 0, to, kAttentionBlockTokens);
      }
    });
    if constexpr (kHasScales<T>) {
      for (int r = row; r < row + rows; ++r) MultiplyBy(key_scales_, scores + size_t(r) * kAttentionBlockTokens);
    }
  }

  void AddValues(int row, int rows, int tokens, float* weights, float* sums) const {
    for (int r = row; r < row + rows; ++r) {
      float* const own = weights + size_t(r) * kAttentionBlockTokens;
      if constexpr (kHasScales<T>) MultiplyBy(value_scales_, own);
      if (tokens % 2 != 0) own[tokens] = 0;
      for (int t = 0; t < tokens; t += V::kLanes) {
        V::Load(own + t).Store(reinterpret_cast<BF16*>(weights_ + size_t(r) * kBlockPairs) + t);
      }
    }
    for (size_t dim = 0; dim < width_; dim += kPanel) {
      const float* const panel = values_ + dim * kBlockPairs;
      ForTiles<V::kPairRows>(rows, [&](int first, int count) {
        const float* const own = weights_ + size_t(row + first) * kBlockPairs;
        float* const to = sums + (row + first) * width_ + dim;
        PairTileOfRows<V, kBlockPairs>(count, Bytes(panel), tokens / 2, Bytes(own), 1, true, to, width_);
        if (tokens % 2 == 0) return;
        // The partner of an odd last token may hold anything, so its V is masked to zero.
        std::byte last[kPanel * kPairBytes];
        const std::byte* const pair = Bytes(panel) + size_t(tokens / 2) * sizeof(last);
        for (int i = 0; i < kPanel; ++i) {
          uint32_t both;
          __builtin_memcpy(&both, pair + size_t(i) * kPairBytes, sizeof(both));
          both &= 0xffff;
          __builtin_memcpy(last + size_t(i) * kPairBytes, &both, sizeof(both));
        }
        PairTileOfRows<V, kBlockPairs>(count, last, 1, Bytes(own + tokens / 2), 1, true, to, width_);
      });
    }
  }

 private:
  // Pairs are stored and copied as floats but never computed with as floats.
  static BATON_INLINE const std::byte* Bytes(const void* p) { return static_cast<const std::byte*>(p); }

  // Loads kLanes pairs of each token, from dimension `dim` on. Pairs past the last dimension are zero.
  void LoadPairs(const TokenRows<V, T>& k, size_t dim, V (&lanes)[V::kLanes]) const {
    if constexpr (sizeof(T) == sizeof(BF16)) {
      if (k.count == V::kLanes && dim + 2 * V::kLanes <= size_t(head_dim_)) {
        BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) {
          lanes[t] = V::Load(reinterpret_cast<const float*>(k.rows[t] + dim));
        }
        return;
      }
    }
    BF16 rows[V::kLanes][2 * V::kLanes] = {};
    for (size_t i = 0; i < 2 * V::kLanes && dim + i < size_t(head_dim_); i += V::kLanes) {
      const int left = head_dim_ - static_cast<int>(dim + i);
      k.Load(dim + i, left < V::kLanes ? left : 0, lanes);
      BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t].Store(rows[t] + i);
    }
    BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t] = V::Load(reinterpret_cast<const float*>(rows[t]));
  }

  // Transposes [kLanes tokens][dims] to [dims / 2][kLanes tokens][2].
  void LoadKeys(const TokenRows<V, T>& k, int first) {
    for (size_t dim = 0; dim < size_t(head_dim_); dim += 2 * V::kLanes) {
      V lanes[V::kLanes];
      LoadPairs(k, dim, lanes);
      V::Transpose(lanes);
      const size_t left = (size_t(head_dim_) - dim) / 2;
      for (size_t i = 0; i < V::kLanes && i < left; ++i)
        lanes[i].Store(keys_ + (dim / 2 + i) * kAttentionBlockTokens + first);
    }
  }

  // Reorders [kLanes tokens][dims] to [panel of dims][tokens / 2][dims of the panel][2 tokens].
  void LoadValues(const TokenRows<V, T>& v, int first) {
    for (size_t dim = 0; dim < width_; dim += V::kLanes) {
      V lanes[V::kLanes];
      BATON_UNROLL for (int t = 0; t < V::kLanes; ++t) lanes[t] = V::Zero();
      const int left = head_dim_ - static_cast<int>(dim);
      if (left > 0) v.Load(dim, left < V::kLanes ? left : 0, lanes);
      float* const panel = values_ + dim / kPanel * kPanel * kBlockPairs + dim % kPanel;
      BATON_UNROLL for (int t = 0; t < V::kLanes; t += 2) {
        V::JoinPairs(lanes[t], lanes[t + 1]).Store(panel + size_t(first + t) / 2 * kPanel);
      }
    }
  }

  static BATON_INLINE void MultiplyBy(const float* scales, float* tokens) {
    BATON_UNROLL for (int t = 0; t < kAttentionBlockTokens; t += V::kLanes) {
      (V::Load(tokens + t) * V::Load(scales + t)).Store(tokens + t);
    }
  }

  const int head_dim_;
  const size_t width_;
  const int rows_;
  // A float in these arrays holds a pair of BF16, except in the scales.
  float* const keys_;          // [dim / 2][token]
  float* const values_;        // [panel of dims][token / 2][dim]
  float* const key_scales_;    // [token]
  float* const value_scales_;  // [token]
  float* const weights_;       // [row][token / 2]
  float* const q_;             // [high part, low part][dim / 2][row]
};

}  // namespace baton::cpu
