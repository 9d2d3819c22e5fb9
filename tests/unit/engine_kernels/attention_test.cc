// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/kv/layout.h"
#include "kernel_testing.h"

namespace baton {
namespace {

using testing::AsKept;
using testing::CloseTo;
using testing::FamilyTest;
using testing::PoisonedActivations;
using testing::RandomMatrix;
using testing::SameBits;
using testing::ToActivations;
using testing::Values;

struct Shape {
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 16;
  int page_tokens = 16;
  KvType dtype = KvType::kF32;
  int qkv_cols() const { return (heads + 2 * kv_heads) * head_dim; }
  int out_cols() const { return heads * head_dim; }
};

// The q, k and v of `tokens` positions of one sequence, and what has been computed of it.
struct Sequence {
  Sequence(const Shape& shape, int tokens, uint32_t seed)
      : tokens(tokens), qkv(RandomMatrix(tokens, shape.qkv_cols(), seed)) {}
  int tokens;
  std::vector<float> qkv;
  std::vector<PageId> pages;
  int done = 0;
  std::vector<float> out;
};

// A pool of NaN in which sequences are computed chunk by chunk, several in a batch.
class Attention {
 public:
  Attention(Backend& backend, const Shape& shape, int pages_total)
      : backend_(backend),
        shape_(shape),
        block_{.kv_heads = shape.kv_heads,
               .head_dim = shape.head_dim,
               .page_tokens = shape.page_tokens,
               .dtype = shape.dtype},
        layout_(1, block_),
        blocks_(pages_total * stride_, std::byte{0xff}) {
    // Pages in no order.
    for (int i = 0; i < pages_total; ++i) free_.push_back(PageId(i));
    std::shuffle(free_.begin(), free_.end(), std::mt19937(7));
  }

  // Computes the next chunks[i] positions of sequences[i], in one batch.
  void Step(std::span<Sequence*> sequences, std::span<const int> chunks) {
    const int rows = std::accumulate(chunks.begin(), chunks.end(), 0);
    const int cols = shape_.qkv_cols();
    std::vector<float> qkv;
    std::vector<SequenceRows> batch;
    for (size_t i = 0; i < sequences.size(); ++i) {
      Sequence& s = *sequences[i];
      while (static_cast<int>(s.pages.size()) < layout_.pages_for(s.done + chunks[i])) {
        s.pages.push_back(free_.back());
        free_.pop_back();
      }
      batch.push_back({.first_row = static_cast<int>(qkv.size()) / cols,
                       .rows = chunks[i],
                       .start_position = s.done,
                       .pages = s.pages});
      qkv.insert(qkv.end(), s.qkv.begin() + size_t(s.done) * cols, s.qkv.begin() + size_t(s.done + chunks[i]) * cols);
    }
    const auto in = ToActivations(backend_, rows, cols, qkv);
    const auto out = PoisonedActivations(backend_, rows, shape_.out_cols());
    const GroupRows group{.block = block_, .block_stride = stride_, .sequences = batch};
    backend_.BeginStep({.heads = shape_.heads, .groups = {&group, 1}});
    const int k_col = shape_.heads * shape_.head_dim;
    backend_.WriteKv(*in, k_col, k_col + shape_.kv_heads * shape_.head_dim, {.data = blocks_.data()});
    backend_.Attention(*in, RowSet::kAll, {.data = blocks_.data()}, *out);
    const std::vector<float> values = Values(backend_, *out, rows);
    auto from = values.begin();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto to = from + ptrdiff_t{chunks[i]} * shape_.out_cols();
      sequences[i]->out.insert(sequences[i]->out.end(), from, to);
      sequences[i]->done += chunks[i];
      from = to;
    }
  }

  // `s` has the first `tokens` tokens, whole pages, in those of `first`.
  void StartBehind(const Sequence& first, int tokens, Sequence& s) {
    s.pages.assign(first.pages.begin(), first.pages.begin() + layout_.pages_for(tokens));
    s.done = tokens;
  }

  void RunAlone(Sequence& s, int chunk) {
    while (s.done < s.tokens) {
      Sequence* one = &s;
      const int count = std::min(chunk, s.tokens - s.done);
      Step({&one, 1}, {&count, 1});
    }
  }

 private:
  Backend& backend_;
  const Shape shape_;
  const KvBlock block_;
  const KvLayout layout_;
  const size_t stride_ = block_.bytes() + 64;  // another group may have larger blocks
  std::vector<std::byte> blocks_;
  std::vector<PageId> free_;
};

std::vector<double> Reference(const Shape& shape, const Sequence& s) {
  const int cols = shape.qkv_cols(), dim = shape.head_dim, group = shape.heads / shape.kv_heads;
  std::vector<float> kept;  // [token][K heads, V heads][dim]
  for (int t = 0; t < s.tokens; ++t) {
    for (int h = shape.heads; h < shape.heads + 2 * shape.kv_heads; ++h) {
      const std::vector<float> head =
          AsKept(shape.dtype, std::span(s.qkv).subspan(size_t(t) * cols + size_t(h) * dim, dim));
      kept.insert(kept.end(), head.begin(), head.end());
    }
  }
  std::vector<double> out;
  for (int t = 0; t < s.tokens; ++t) {
    for (int h = 0; h < shape.heads; ++h) {
      const float* const q = &s.qkv[size_t(t) * cols + size_t(h) * dim];
      const auto kv = [&](int token, int part, int i) {
        const int head = (token * 2 + part) * shape.kv_heads + h / group;
        return double{kept[size_t(head) * dim + i]};
      };
      std::vector<double> weights(t + 1);
      for (int u = 0; u <= t; ++u) {
        for (int i = 0; i < dim; ++i) weights[u] += q[i] * kv(u, 0, i);
        weights[u] /= std::sqrt(dim);
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      for (double& weight : weights) weight = std::exp(weight - max);
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (int i = 0; i < dim; ++i) {
        double sum = 0;
        for (int u = 0; u <= t; ++u) sum += weights[u] * kv(u, 1, i);
        out.push_back(sum / total);
      }
    }
  }
  return out;
}

class AttentionTest : public FamilyTest {
 protected:
  // One family rounds queries and weights to BF16 where the KV cache holds BF16.
  static double Tolerance(KvType dtype) {
    const bool pairs = GetParam() == "avx512-bf16" && dtype != KvType::kF32 && dtype != KvType::kF16;
    return pairs ? 5e-3 : 2e-6;
  }
};

TEST_P(AttentionTest, MatchesDoubleArithmeticForAnyShapeAndType) {
  const auto backend = NewBackend(2);
  const Shape shapes[] = {
      {.heads = 2, .kv_heads = 2, .head_dim = 8, .page_tokens = 4},   // MHA, tiny
      {.heads = 6, .kv_heads = 1, .head_dim = 24, .page_tokens = 8},  // MQA, odd head_dim
      {.heads = 14, .kv_heads = 2, .head_dim = 64, .page_tokens = 16},
      {.heads = 4, .kv_heads = 1, .head_dim = 128, .page_tokens = 64},
      {.heads = 40, .kv_heads = 1, .head_dim = 40, .page_tokens = 16},  // a group of more rows than a piece has
      {.heads = 2, .kv_heads = 1, .head_dim = 256, .page_tokens = 128},
  };
  for (Shape shape : shapes) {
    for (const KvType dtype : kKvTypes) {
      shape.dtype = dtype;
      Sequence sequence(shape, 75, 1);
      Attention(*backend, shape, 32).RunAlone(sequence, 75);
      EXPECT_TRUE(CloseTo(sequence.out, Reference(shape, sequence), Tolerance(dtype)))
          << shape.heads << "/" << shape.kv_heads << " heads of " << shape.head_dim << ", " << Name(dtype);
    }
  }
}

TEST_P(AttentionTest, SurvivesScoresFarApart) {
  const auto backend = NewBackend(1);
  const Shape shape{.heads = 1, .kv_heads = 1, .head_dim = 8};
  Sequence sequence(shape, 70, 1);
  for (float& value : sequence.qkv) value *= 30.0f;
  Attention(*backend, shape, 8).RunAlone(sequence, 70);
  // Scores in the hundreds are themselves good to 1e-4 only.
  EXPECT_TRUE(CloseTo(sequence.out, Reference(shape, sequence), 1e-3));
}

TEST_P(AttentionTest, DoesNotDependOnChunksPagesOrThreads) {
  for (const KvType dtype : {KvType::kF32, KvType::kBF16, KvType::kInt8, KvType::kFp8}) {
    for (const int head_dim : {8, 64}) {
      Shape shape{.heads = 6, .kv_heads = 2, .head_dim = head_dim, .dtype = dtype};
      constexpr int kTokens = 131;
      Sequence whole(shape, kTokens, 1);
      Attention(*NewBackend(1), shape, 64).RunAlone(whole, kTokens);
      for (const int threads : {1, 2, 3, 4}) {
        const auto backend = NewBackend(threads);
        for (const int chunk : {1, 7, 16, 31, 32, 33, 100, kTokens}) {
          shape.page_tokens = chunk % 2 == 0 ? 64 : 4;
          Sequence cut(shape, kTokens, 1);
          Attention(*backend, shape, 64).RunAlone(cut, chunk);
          ASSERT_TRUE(SameBits(whole.out, cut.out))
              << Name(dtype) << ", chunks of " << chunk << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST_P(AttentionTest, DoesNotDependOnTheRestOfTheBatch) {
  const Shape shape{.dtype = KvType::kBF16};
  constexpr int kLengths[] = {97, 33, 64, 5};
  std::vector<Sequence> alone, together;
  for (uint32_t i = 0; i < 4; ++i) {
    alone.emplace_back(shape, kLengths[i], i);
    together.emplace_back(shape, kLengths[i], i);
  }
  const auto backend = NewBackend(2);
  for (Sequence& sequence : alone) Attention(*backend, shape, 16).RunAlone(sequence, sequence.tokens);

  // Each goes on by chunks of its own, beside whichever others are not done.
  Attention attention(*backend, shape, 32);
  for (size_t step = 0;; ++step) {
    std::vector<Sequence*> batch;
    std::vector<int> chunks;
    for (size_t i = 0; i < together.size(); ++i) {
      const int left = together[i].tokens - together[i].done;
      if (left == 0) continue;
      batch.push_back(&together[i]);
      chunks.push_back(std::min<int>(left, 1 + static_cast<int>(step * 5 + i * 11) % 23));
    }
    if (batch.empty()) break;
    if (step % 2 == 1) {
      std::reverse(batch.begin(), batch.end());
      std::reverse(chunks.begin(), chunks.end());
    }
    attention.Step(batch, chunks);
  }
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(SameBits(alone[i].out, together[i].out)) << "sequence " << i;
  }
}

// Sequences that begin with the same pages are computed together; it must not show.
TEST_P(AttentionTest, DoesNotDependOnWhoSharesPages) {
  for (const KvType dtype : kKvTypes) {
    const Shape shape{.heads = 4, .kv_heads = 2, .head_dim = 24, .dtype = dtype};
    constexpr int kLengths[] = {97, 80, 140, 33, 81, 100};
    constexpr int kShared[] = {80, 80, 80, 16, 80, 64};  // with the first, whole pages
    const auto backend = NewBackend(2);
    std::vector<Sequence> alone, together;
    for (uint32_t i = 0; i < std::size(kLengths); ++i) {
      Sequence sequence(shape, kLengths[i], i);
      if (i > 0) std::copy_n(alone[0].qkv.begin(), size_t(kShared[i]) * shape.qkv_cols(), sequence.qkv.begin());
      alone.push_back(sequence);
      together.push_back(sequence);
    }
    for (Sequence& sequence : alone) Attention(*backend, shape, 16).RunAlone(sequence, sequence.tokens);

    Attention attention(*backend, shape, 64);
    attention.RunAlone(together[0], kShared[0]);
    for (size_t i = 1; i < together.size(); ++i) attention.StartBehind(together[0], kShared[i], together[i]);
    while (true) {
      std::vector<Sequence*> batch;
      for (Sequence& sequence : together) {
        if (sequence.done < sequence.tokens) batch.push_back(&sequence);
      }
      if (batch.empty()) break;
      attention.Step(batch, std::vector<int>(batch.size(), 1));
    }
    for (size_t i = 0; i < together.size(); ++i) {
      const auto own = std::span(alone[i].out).last(together[i].out.size());
      EXPECT_TRUE(SameBits(own, together[i].out)) << Name(dtype) << ", sequence " << i;
    }
  }
}

TEST_P(AttentionTest, LaterTokensOfTheSameChunkDoNotShow) {
  const auto backend = NewBackend(1);
  for (const KvType dtype : kKvTypes) {
    const Shape shape{.heads = 2, .kv_heads = 1, .head_dim = 16, .dtype = dtype};
    Sequence sequence(shape, 40, 1);
    Attention(*backend, shape, 8).RunAlone(sequence, 40);

    // The last token's K and V are infinite, which would spoil every sum they enter, even with weight zero.
    Sequence spoiled(shape, 40, 1);
    std::fill(spoiled.qkv.end() - ptrdiff_t{2} * shape.head_dim, spoiled.qkv.end(),
              std::numeric_limits<float>::infinity());
    Attention(*backend, shape, 8).RunAlone(spoiled, 40);
    const size_t before_last = size_t{39} * shape.out_cols();
    EXPECT_TRUE(SameBits(std::span(sequence.out).first(before_last), std::span(spoiled.out).first(before_last)))
        << Name(dtype);
  }
}

INSTANTIATE_FOR_FAMILIES(AttentionTest);

}  // namespace
}  // namespace baton
