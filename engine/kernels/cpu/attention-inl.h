// SPDX-License-Identifier: Apache-2.0
// Causal attention over KV pages, one task at a time, with a one-pass softmax. Sources: Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; tiling of Dao et al., "FlashAttention", 2022.
//
// Tokens are taken in order, in blocks of kAttentionBlockTokens counted from position 0. Blocks are independent of
// pages, so the page size does not change the bits.
//
// A query's result depends only on the tokens up to the query, not on other queries and sequences of the task. Slots
// past the query may hold anything and never enter its result.
#pragma once

#include "engine/kernels/cpu/attention_block-inl.h"

namespace baton::cpu {

// Scratch of a task, per row. Rows are ordered [member][query][head of the group].
template <typename V>
struct AttentionRows {
  static size_t ScratchSize(int rows, int head_dim) {
    return rows * (PaddedWidth<V>(head_dim) + kAttentionBlockTokens + 2);
  }

  AttentionRows(float* scratch, int rows, int head_dim)
      : width(PaddedWidth<V>(head_dim)),
        sums(scratch),
        scores(sums + size_t(rows) * width),
        max(scores + size_t(rows) * kAttentionBlockTokens),
        total(max + rows) {}

  size_t width;
  float* sums;    // [rows, width]: sum of weight * V
  float* scores;  // [rows, kAttentionBlockTokens]: scores, then softmax weights
  float* max;     // [rows]: running maximum of the scores
  float* total;   // [rows]: running sum of the weights
};

// Turns the scores of one row into weights. If the maximum grew, rescales the earlier sums to the new maximum.
template <typename V>
void SoftmaxRow(const AttentionRows<V>& s, int row, int tokens) {
  float* const scores = s.scores + row * kAttentionBlockTokens;
  int padded = tokens;
  for (; padded % V::kLanes != 0; ++padded) scores[padded] = -__builtin_inff();
  V largest = V::Set(s.max[row]);
  for (int t = 0; t < padded; t += V::kLanes) largest = V::Max(largest, V::Load(scores + t));
  const float max = largest.MaxLane();
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
  s.total[row] += weights.SumLanes();
}

// Adds a block to rows [row, row + rows), which all see its first `tokens` tokens.
template <typename V, typename Block>
void AttendBlock(const AttentionRows<V>& s, const Block& block, int row, int rows, int tokens) {
  block.Score(row, rows, s.scores);
  for (int r = row; r < row + rows; ++r) SoftmaxRow(s, r, tokens);
  block.AddValues(row, rows, tokens, s.scores, s.sums);
}

// Loads the block at position `first`, cut at position `end`, and prefetches the next block.
template <typename V, typename Block>
void LoadBlock(const AttentionTask& task, const PageId* pages, int first, int end, Block& block) {
  const int left = end - first;
  block.Load(task, pages, first, left < kAttentionBlockTokens ? left : kAttentionBlockTokens);
  if (left > kAttentionBlockTokens) {
    const int next =
        left - kAttentionBlockTokens < kAttentionBlockTokens ? left - kAttentionBlockTokens : kAttentionBlockTokens;
    PrefetchTokens<V, typename Block::Stored>(task, pages, first + kAttentionBlockTokens, next);
  }
}

template <typename V, typename Block>
void BeginMember(const AttentionTask& task, const AttentionMember& member, int row, const AttentionRows<V>& s,
                 Block& block) {
  const float scale = 1.0f / V::Sqrt(static_cast<float>(task.head_dim));
  for (int i = 0; i < member.queries * task.group; ++i, ++row) {
    block.SetQuery(row, member.q + i / task.group * task.q_stride + size_t(i % task.group) * task.head_dim, scale);
    for (size_t dim = 0; dim < s.width; dim += V::kLanes) V::Zero().Store(s.sums + row * s.width + dim);
    s.max[row] = -__builtin_inff();
    s.total[row] = 0;
  }
}

// Attends to the tokens from `begin` on, which only this member's rows see.
template <typename V, typename Block>
void AttendOwn(const AttentionTask& task, const AttentionMember& member, int begin, int row, const AttentionRows<V>& s,
               Block& block) {
  const int end = member.start_position + member.queries;
  for (int first = begin; first < end; first += kAttentionBlockTokens) {
    LoadBlock<V>(task, member.pages, first, end, block);
    // Queries before the block's last token see a part of the block, each a different part. Queries from there on see
    // the whole block.
    int query = first > member.start_position ? first - member.start_position : 0;
    for (; query < member.queries && member.start_position + query < first + kAttentionBlockTokens - 1; ++query) {
      AttendBlock(s, block, row + query * task.group, task.group, member.start_position + query - first + 1);
    }
    AttendBlock(s, block, row + query * task.group, (member.queries - query) * task.group, kAttentionBlockTokens);
  }
}

template <typename V>
void EndMember(const AttentionTask& task, const AttentionMember& member, int row, const AttentionRows<V>& s) {
  for (int i = 0; i < member.queries * task.group; ++i, ++row) {
    float* const out = member.out + i / task.group * task.out_stride + size_t(i % task.group) * task.head_dim;
    const V total = V::Set(s.total[row]);
    ForVectors<V>(task.head_dim, [&](size_t dim, int partial) {
      StoreSome(V::Load(s.sums + row * s.width + dim) / total, out + dim, partial);
    });
  }
}

template <typename V, typename Block>
void AttendInBlocks(const AttentionTask& task) {
  int rows = 0;
  for (int m = 0; m < task.member_count; ++m) rows += task.members[m].queries * task.group;
  const AttentionRows<V> s(task.scratch, rows, task.head_dim);
  Block block(task.scratch + AttentionRows<V>::ScratchSize(rows, task.head_dim), rows, task.head_dim);
  int row = 0;
  for (int m = 0; m < task.member_count; row += task.members[m++].queries * task.group) {
    BeginMember(task, task.members[m], row, s, block);
  }
  for (int first = 0; first < task.shared_tokens; first += kAttentionBlockTokens) {
    LoadBlock<V>(task, task.members[0].pages, first, task.shared_tokens, block);
    AttendBlock(s, block, 0, rows, kAttentionBlockTokens);
  }
  row = 0;
  for (int m = 0; m < task.member_count; row += task.members[m++].queries * task.group) {
    AttendOwn(task, task.members[m], task.shared_tokens, row, s, block);
    EndMember(task, task.members[m], row, s);
  }
}

template <typename V, typename T>
void Attention(const AttentionTask& task) {
  if constexpr (V::kHasPairs && kExactInBF16<T>) {
    AttendInBlocks<V, PairBlock<V, T>>(task);
  } else {
    AttendInBlocks<V, FloatBlock<V, T>>(task);
  }
}

template <typename V>
size_t AttentionScratchSize(int rows, int head_dim) {
  size_t size = FloatBlock<V, float>::ScratchSize(rows, head_dim);
  if constexpr (V::kHasPairs) {
    const size_t pairs = PairBlock<V, BF16>::ScratchSize(rows, head_dim);
    if (pairs > size) size = pairs;
  }
  return size + AttentionRows<V>::ScratchSize(rows, head_dim);
}

}  // namespace baton::cpu
