// SPDX-License-Identifier: Apache-2.0
#include "engine/model/replay_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/steady_time.h"
#include "tests/mixed_sampling.h"
#include "tests/model_runner.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::Fails;
using testing::PagedSequence;

const ReplayOptions kAtOnce{.cost = {}};
const std::vector<TokenId> kPrompt = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};

class ReplayModelTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(model_, LoadReplayModel(testing::TinyModel("llama_gqa"), kAtOnce)); }

  TokenId Said(int row) const {
    const std::span<const float> logits = output_.row(row);
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.begin() + model_->config().vocab_size) -
                                logits.begin());
  }
  // Returns `count` tokens: the token after the prompt, then each next token.
  std::vector<TokenId> Generate(PagePool& pool, PagedSequence& sequence, int count, int chunk) {
    std::vector<TokenId> said;
    while (static_cast<int>(said.size()) < count) {
      const SequenceInput input = sequence.Next(chunk, Want::kLastLogits);
      EXPECT_OK(model_->Forward({&input, 1}, pool, nullptr, output_));
      sequence.computed += static_cast<int>(input.tokens.size());
      if (!sequence.done()) continue;
      said.push_back(Said(output_.rows[0].first));
      sequence.tokens.push_back(said.back());
    }
    return said;
  }

  std::unique_ptr<Model> model_;
  ForwardOutput output_;
};

TEST_F(ReplayModelTest, SaysTheSameHoweverThePromptIsCut) {
  const auto pool = testing::MakePool(*model_, 32);
  PagedSequence whole(*pool, kPrompt, 40);
  const std::vector<TokenId> said = Generate(*pool, whole, 10, 100);
  for (const int chunk : {1, 3, 16, 19}) {
    PagedSequence cut(*pool, kPrompt, 40);
    EXPECT_EQ(Generate(*pool, cut, 10, chunk), said) << chunk;
  }
  std::vector<TokenId> other = kPrompt;
  other[0] = 4;
  PagedSequence sequence(*pool, other, 40);
  EXPECT_NE(Generate(*pool, sequence, 10, 100), said) << "every token counts";
}

TEST_F(ReplayModelTest, SampledTokensAreThoseOfTheSerialSamplerOnTheLogits) {
  const auto pool = testing::MakePool(*model_, 32);
  const PagedSequence b(*pool, {4, 5, 6}, 3);
  const testing::Sampling sampling = testing::MixedSampling(model_->config().vocab_size, 1);
  Sampler serial;
  ASSERT_OK(model_->Forward({{b.Next(3, Want::kLastLogits)}}, *pool, nullptr, output_));
  const SampledToken want = serial.Sample(output_.row(0), sampling.params, sampling.history);
  const std::vector<float> logits_of_b(output_.row(0).begin(), output_.row(0).end());

  SequenceInput sampled = b.Next(3, Want::kToken);
  sampled.sampling = &sampling.params;
  sampled.history = &sampling.history;
  ASSERT_OK(model_->Forward({{sampled, b.Next(3, Want::kLastLogits)}}, *pool, nullptr, output_));
  EXPECT_TRUE(testing::SameSample(output_.sampled[0], want));
  EXPECT_EQ(output_.values, logits_of_b);
}

TEST_F(ReplayModelTest, KnowsWhatWasBeforeFromThePagesAlone) {
  const auto pool = testing::MakePool(*model_, 32);
  PagedSequence here(*pool, kPrompt, 40);
  const std::vector<TokenId> said = Generate(*pool, here, 1, 100);
  // The same pages elsewhere, in another order.
  const auto there = testing::MakePool(*model_, 32);
  PagedSequence moved(*there, kPrompt, 40);
  std::swap(moved.pages[0], moved.pages[1]);
  for (int layer = 0; layer < model_->config().layers; ++layer) {
    for (size_t i = 0; i < 2; ++i) {
      std::memcpy(there->block(layer, moved.pages[i]), pool->block(layer, here.pages[i]),
                  model_->kv_layout().block_stride());
    }
  }
  moved.computed = here.computed;
  moved.tokens.push_back(said[0]);
  EXPECT_EQ(Generate(*there, moved, 5, 100), Generate(*pool, here, 5, 100));
}

TEST_F(ReplayModelTest, APageOfAnotherSequenceShows) {
  const auto pool = testing::MakePool(*model_, 32);
  PagedSequence one(*pool, kPrompt, 40);
  PagedSequence two(*pool, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 40);
  Generate(*pool, one, 1, 100);
  Generate(*pool, two, 1, 100);
  // In one layer: the layers differ.
  std::memcpy(pool->block(1, one.pages[1]), pool->block(1, two.pages[1]), model_->kv_layout().block_stride());
  const SequenceInput input = one.Next(1, Want::kLastLogits);
  EXPECT_TRUE(Fails(model_->Forward({&input, 1}, *pool, nullptr, output_), absl::StatusCode::kInternal,
                    "KV of position 19 in layer "));
  // In all of them: other tokens.
  for (int layer = 0; layer < model_->config().layers; ++layer) {
    std::memcpy(pool->block(layer, one.pages[1]), pool->block(layer, two.pages[1]), model_->kv_layout().block_stride());
  }
  PagedSequence untouched(*pool, kPrompt, 40);
  Generate(*pool, untouched, 1, 100);
  EXPECT_NE(Generate(*pool, one, 5, 100), Generate(*pool, untouched, 5, 100));
}

TEST_F(ReplayModelTest, EveryPageCountsInEveryLayer) {
  const auto pool = testing::MakePool(*model_, 32);
  PagedSequence untouched(*pool, kPrompt, 60);
  const std::vector<TokenId> said = Generate(*pool, untouched, 20, 100);
  for (int layer = 0; layer < model_->config().layers; ++layer) {
    PagedSequence sequence(*pool, kPrompt, 60);
    const std::vector<TokenId> before = Generate(*pool, sequence, 1, 100);
    EXPECT_EQ(before[0], said[0]);
    std::memset(pool->block(layer, sequence.pages[0]), 0, model_->kv_layout().block_stride());  // the first page of two
    const std::vector<TokenId> after = Generate(*pool, sequence, 19, 100);
    EXPECT_FALSE(std::equal(after.begin(), after.end(), said.begin() + 1)) << layer;
  }
}

TEST_F(ReplayModelTest, AStepOfSeveralSequencesTakesTheTimeOfItsWork) {
  const StepCost cost{
      .step = 4e-3, .prompt_token = 3e-4, .decode_row = 2e-4, .prompt_attended = 1e-5, .decode_attended = 3e-5};
  const SteadyTime start = SteadyTime() + absl::Seconds(7);
  std::vector<SteadyTime> slept_until;
  ReplayOptions options{.cost = cost};
  options.now = [&] { return start; };
  options.sleep_until = [&](SteadyTime time) { slept_until.push_back(time); };
  ASSERT_OK_AND_ASSIGN(model_, LoadReplayModel(testing::TinyModel("llama_gqa"), options));
  const auto pool = testing::MakePool(*model_, 32);
  PagedSequence decoding(*pool, kPrompt, 40);
  Generate(*pool, decoding, 1, 100);
  PagedSequence later_chunk(*pool, kPrompt, 40);
  const SequenceInput first_chunk = later_chunk.Next(8, Want::kNothing);
  ASSERT_OK(model_->Forward({&first_chunk, 1}, *pool, nullptr, output_));
  later_chunk.computed = 8;
  const PagedSequence new_prompt(*pool, {4, 5, 6, 7, 8}, 40);

  slept_until.clear();
  ASSERT_OK(model_->Forward(
      {{decoding.Next(1, Want::kLastLogits), later_chunk.Next(3, Want::kNothing), new_prompt.Next(5, Want::kNothing)}},
      *pool, nullptr, output_));
  StepWork work;
  work.AddDecode(/*position=*/20);
  work.AddPrompt(/*position=*/8, /*tokens=*/3);
  work.AddPrompt(/*position=*/0, /*tokens=*/5);
  const int layers = model_->config().layers;
  ASSERT_EQ(slept_until.size(), layers);
  for (int layer = 0; layer < layers; ++layer) {
    EXPECT_NEAR(absl::ToDoubleSeconds(slept_until[layer] - start), cost.Seconds(work) * (layer + 1) / layers, 1e-8);
  }
}

TEST_F(ReplayModelTest, TakesItsTimeAndEndsWhenNobodyWaits) {
  ASSERT_OK_AND_ASSIGN(
      model_, LoadReplayModel(testing::TinyModel("llama_gqa"), {.cost = {.step = 0.02, .prompt_token = 1e-3}}));
  const auto pool = testing::MakePool(*model_, 32);
  PagedSequence sequence(*pool, kPrompt, 40);
  const SequenceInput input = sequence.Next(100, Want::kLastLogits);
  const SteadyTime start = SteadyTime::Now();
  ASSERT_OK(model_->Forward({&input, 1}, *pool, nullptr, output_));
  EXPECT_GE(SteadyTime::Now() - start, absl::Milliseconds(39)) << "20 ms and 20 tokens";
  const auto never = [](int /*layer*/) { return false; };
  EXPECT_TRUE(Fails(model_->Forward({&input, 1}, *pool, never, output_), absl::StatusCode::kCancelled, ""));
}

TEST_F(ReplayModelTest, NeedsNoWeights) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "no_weights";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(testing::TinyModel("llama_gqa") / "config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_OK_AND_ASSIGN(const auto model, LoadReplayModel(folder, kAtOnce));
  EXPECT_EQ(model->numerics_id(), model_->numerics_id());
  std::filesystem::remove(folder / "config.json");
  EXPECT_TRUE(Fails(LoadReplayModel(folder, kAtOnce).status(), absl::StatusCode::kNotFound, "config.json"));
}

}  // namespace
}  // namespace baton
