// SPDX-License-Identifier: Apache-2.0
// Forward's promises besides its numbers: refusals, results, and when K and V are complete.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/mixed_sampling.h"
#include "tests/model_runner.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;
using testing::PagedSequence;

class ForwardTest : public ::testing::Test {
 protected:
  absl::Status Forward(const std::vector<SequenceInput>& batch) {
    return model_->Forward(batch, *pool_, nullptr, output_);
  }

  const std::unique_ptr<Model> model_ = testing::LoadModel(testing::TinyModel("llama_gqa"));
  const std::unique_ptr<PagePool> pool_ = testing::MakePool(*model_, 32);
  ForwardOutput output_;
};

TEST_F(ForwardTest, RefusesWhatIsOutOfRangeAndNamesTheSequence) {
  const std::vector<TokenId> good(17, 1);
  const std::vector<TokenId> negative = {1, -1};
  const std::vector<TokenId> past = {67};
  const std::vector<PageId> pages = {PageId{0}, PageId{1}};
  const std::vector<PageId> outside = {PageId{0}, PageId{32}};
  const SequenceInput fine = {good, 0, pages};
  ASSERT_OK(Forward({fine}));
  EXPECT_TRUE(Fails(Forward({}), kInvalid, "expected at least one sequence"));
  EXPECT_TRUE(
      Fails(Forward({fine, {{}, 0, pages}}), kInvalid, "sequence 1 of the batch: expected at least one new token"));
  EXPECT_TRUE(Fails(Forward({{negative, 0, pages}}), kInvalid, "sequence 0 of the batch: token -1 is outside"));
  EXPECT_TRUE(
      Fails(Forward({{past, 0, pages}}), kInvalid, "token 67 is outside the vocabulary, expected less than 67"));
  EXPECT_TRUE(Fails(Forward({{good, -1, pages}}), kInvalid, "positions [-1, 16) are outside"));
  EXPECT_TRUE(Fails(Forward({{good, 500, pages}}), kInvalid, "positions [500, 517) are outside the model's [0, 512)"));
  EXPECT_TRUE(Fails(Forward({{good, INT32_MAX, pages}}), kInvalid, "are outside the model's [0, 512)"));
  EXPECT_TRUE(Fails(Forward({{good, 16, pages}}), kInvalid, "33 tokens need 3 pages, got 2"));
  EXPECT_TRUE(Fails(Forward({{good, 0, outside}}), kInvalid, "page 32 is outside the pool, expected less than 32"));
}

TEST_F(ForwardTest, RefusesAPoolOfAnotherLayout) {
  const auto other = testing::LoadModel(testing::TinyModel("llama_mha"));
  const auto pool = testing::MakePool(*other, 4);
  const PagedSequence sequence(*pool, {1, 2}, 2);
  const SequenceInput input = sequence.Next(2, Want::kNothing);
  EXPECT_TRUE(Fails(model_->Forward({&input, 1}, *pool, nullptr, output_), kInvalid, "KV layout"));
}

TEST_F(ForwardTest, ComputesNothingWhenOneSequenceIsRefused) {
  std::memset(pool_->data(), 0x5a, pool_->bytes());
  const std::vector<std::byte> before(pool_->data(), pool_->data() + pool_->bytes());
  const std::vector<TokenId> good = {1, 2, 3};
  const std::vector<TokenId> bad = {99};
  const std::vector<PageId> pages = {PageId{0}};
  EXPECT_FALSE(Forward({{good, 0, pages}, {bad, 0, pages}}).ok());
  EXPECT_EQ(std::memcmp(before.data(), pool_->data(), before.size()), 0);
}

TEST_F(ForwardTest, ReturnsTheRowsThatEachSequenceWants) {
  // Given four sequences that want different things
  std::vector<PagedSequence> sequences;
  sequences.reserve(4);
  for (int i = 0; i < 4; ++i) sequences.emplace_back(*pool_, testing::RandomTokens(5 + i, 67, i), 16);
  const Want wants[] = {Want::kAllLogits, Want::kNothing, Want::kLastHidden, Want::kLastLogits};
  std::vector<SequenceInput> batch;
  batch.reserve(4);
  for (int i = 0; i < 4; ++i) batch.push_back(sequences[i].Next(16, wants[i]));

  // when they run together
  ASSERT_OK(Forward(batch));

  // then each has its rows, and they hold what the sequence alone gives
  ASSERT_EQ(output_.rows.size(), 4U);
  const int counts[] = {5, 0, 1, 1};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(output_.rows[i].count, counts[i]) << i;
  const ForwardOutput together = output_;
  for (const int i : {0, 2, 3}) {
    ASSERT_OK(Forward({batch[i]}));
    for (int r = 0; r < counts[i]; ++r) {
      const int width = wants[i] == Want::kLastHidden ? model_->config().hidden_size : model_->config().vocab_size;
      EXPECT_EQ(
          std::memcmp(together.row(together.rows[i].first + r).data(), output_.row(r).data(), width * sizeof(float)), 0)
          << "sequence " << i << ", row " << r;
    }
  }
}

TEST_F(ForwardTest, RefusesAPoolInMemoryThatTheBackendCannotReach) {
  std::vector<std::byte> memory(model_->kv_layout().page_bytes());
  ASSERT_OK_AND_ASSIGN(const auto pool,
                       PagePool::Create(model_->kv_layout(), 1, [&](size_t) -> absl::StatusOr<PoolMemory> {
                         return PoolMemory{memory.data(), nullptr, MemoryKind::kDevice};
                       }));
  const PagedSequence sequence(*pool, {1, 2, 3}, 3);
  EXPECT_TRUE(Fails(model_->Forward({{sequence.Next(3, Want::kLastLogits)}}, *pool, nullptr, output_), kInvalid,
                    "the page pool is in device memory, expected host memory"));
}

TEST_F(ForwardTest, ReturnsNothingWhenNothingIsWanted) {
  const PagedSequence sequence(*pool_, {1, 2, 3}, 3);
  ASSERT_OK(Forward({sequence.Next(3, Want::kNothing)}));
  EXPECT_TRUE(output_.values.empty());
  EXPECT_EQ(output_.rows.at(0).count, 0);
}

TEST_F(ForwardTest, SampledTokensAreThoseOfTheSerialSamplerOnTheLogits) {
  // given sequences of different lengths, of which every third wants logits, a hidden state or nothing instead
  constexpr int kMost = 64;
  const auto pool = testing::MakePool(*model_, kMost);
  const int vocab = model_->config().vocab_size;
  std::vector<PagedSequence> sequences;
  std::vector<testing::Sampling> sampling;
  for (int i = 0; i < kMost; ++i) {
    sequences.emplace_back(*pool, testing::RandomTokens(1 + i % 9, vocab, i), 16);
    sampling.push_back(testing::MixedSampling(vocab, i));
  }
  Sampler serial;
  std::vector<SampledToken> want;
  for (int i = 0; i < kMost; ++i) {
    ASSERT_OK(model_->Forward({{sequences[i].Next(16, Want::kLastLogits)}}, *pool, nullptr, output_));
    want.push_back(serial.Sample(output_.row(0), sampling[i].params, sampling[i].history));
  }
  for (int count = 1; count <= kMost; ++count) {
    constexpr Want kOthers[] = {Want::kAllLogits, Want::kLastHidden, Want::kNothing};
    std::vector<SequenceInput> batch;
    int values = 0;
    for (int i = 0; i < count; ++i) {
      batch.push_back(sequences[i].Next(16, i % 3 == 2 ? kOthers[i / 3 % 3] : Want::kToken));
      batch.back().sampling = &sampling[i].params;
      batch.back().history = &sampling[i].history;
    }

    // when they run in one step
    ASSERT_OK(model_->Forward(batch, *pool, nullptr, output_));

    // then each has the token that its own logits give, and no logits besides
    ASSERT_EQ(output_.sampled.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      values += output_.rows[i].count;
      if (batch[i].want != Want::kToken) continue;
      EXPECT_EQ(output_.rows[i].count, 0);
      ASSERT_TRUE(testing::SameSample(output_.sampled[i], want[i])) << "sequence " << i << " of " << count;
    }
    EXPECT_EQ(output_.values.size(), static_cast<size_t>(values) * output_.width);
  }
}

TEST_F(ForwardTest, ATokenNeedsSamplingParameters) {
  const PagedSequence sequence(*pool_, {1, 2, 3}, 3);
  EXPECT_TRUE(Fails(Forward({sequence.Next(3, Want::kToken)}), kInvalid,
                    "sequence 0 of the batch: expected sampling parameters and a history for the token"));
}

TEST_F(ForwardTest, AllLogitsAtOnceAreThoseOfOneTokenAtATime) {
  const std::vector<TokenId> tokens = testing::RandomTokens(150, 67, 1);  // more rows than pass the head at once
  for (const std::string& name : testing::TinyModelNames()) {
    const auto model = testing::LoadModel(testing::TinyModel(name));
    const auto pool = testing::MakePool(*model, 32);
    PagedSequence whole(*pool, tokens, 150);
    PagedSequence single(*pool, tokens, 150);
    EXPECT_EQ(testing::AllLogits(*model, *pool, whole, 150), testing::AllLogits(*model, *pool, single, 1)) << name;
  }
}

TEST_F(ForwardTest, AnyPageSizeServes) {
  const std::vector<TokenId> tokens = testing::RandomTokens(150, 67, 1);
  const std::vector<float> expected = testing::AllLogits(*model_, tokens);
  for (const int page_tokens : {1, 3, 16, 64, 256}) {
    const auto model = testing::LoadModel(testing::TinyModel("llama_gqa"), {.page_tokens = page_tokens});
    EXPECT_LT(testing::RelativeError(testing::AllLogits(*model, tokens), expected), 1e-5) << page_tokens;
  }
}

TEST_F(ForwardTest, ReportsEachLayerOnceItsKvIsComplete) {
  const std::vector<TokenId> tokens = testing::RandomTokens(20, 67, 7);
  const PagedSequence sequence(*pool_, tokens, 20);
  const SequenceInput input = sequence.Next(20, Want::kNothing);
  const size_t block_bytes = pool_->layout().block_stride();
  const auto layer_bytes = [&](int layer) {
    std::string bytes;
    for (const PageId page : sequence.pages) {
      bytes.append(reinterpret_cast<const char*>(pool_->block(layer, page)), block_bytes);
    }
    return bytes;
  };

  // When the callback copies a layer's pages at once
  std::vector<std::string> when_done;
  ASSERT_OK(model_->Forward(
      {&input, 1}, *pool_,
      [&](int layer) {
        EXPECT_EQ(layer, static_cast<int>(when_done.size()));
        when_done.push_back(layer_bytes(layer));
        return true;
      },
      output_));

  // then the copy is what the layer is in the end.
  ASSERT_EQ(when_done.size(), 2U);
  for (int layer = 0; layer < 2; ++layer) EXPECT_EQ(when_done[layer], layer_bytes(layer));
  EXPECT_NE(when_done[0], when_done[1]);
}

TEST_F(ForwardTest, EndsWhenALayersCallbackSaysSo) {
  const PagedSequence sequence(*pool_, testing::RandomTokens(20, 67, 7), 20);
  const SequenceInput input = sequence.Next(20, Want::kLastLogits);
  int layers = 0;
  const absl::Status status =
      model_->Forward({&input, 1}, *pool_, [&](int /*layer*/) { return ++layers > 1; }, output_);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(layers, 1);
}

}  // namespace
}  // namespace baton
