// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "reference_sampler.h"
#include "special_floats.h"

namespace baton {
namespace {

using ::testing::ElementsAre;

std::vector<float> RandomLogits(size_t size, uint32_t seed, float spread = 3.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

SampledToken Sample(const std::vector<float>& logits, const SamplingParams& params,
                    const ReferenceHistory& history = {}) {
  return Sampler().Sample(logits, params, history.ToHistory());
}

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

// Every token that `draws` seeds give.
std::set<TokenId> TokensDrawn(const std::vector<float>& logits, SamplingParams params, int draws = 2000) {
  std::set<TokenId> drawn;
  for (int i = 0; i < draws; ++i) {
    params.seed = static_cast<uint64_t>(i);
    drawn.insert(Sample(logits, params).token);
  }
  return drawn;
}

TEST(SamplerTest, AgreesWithTheReferenceUnderRandomParameters) {
  std::mt19937 random(7);
  const auto one_of = [&](auto... choices) {
    const float list[] = {static_cast<float>(choices)...};
    return list[random() % std::size(list)];
  };
  const auto token = [&] { return static_cast<TokenId>(random() % 1000); };
  Sampler sampler;
  for (int round = 0; round < 1500; ++round) {
    const std::vector<float> logits = RandomLogits(1000, static_cast<uint32_t>(round), one_of(0.1, 3, 10));
    SamplingParams params;
    params.temperature = one_of(0, 0.3, 1, 1.7);
    params.top_k = static_cast<int>(one_of(0, 1, 7, 400, 5000));
    params.top_p = one_of(1, 0.95, 0.5, 0);
    params.min_p = one_of(0, 0, 0.05, 1);
    params.repetition_penalty = one_of(1, 1.3, 0.8);
    params.presence_penalty = one_of(0, 0.7, -1);
    params.frequency_penalty = one_of(0, 0.4, -0.2);
    params.min_tokens = static_cast<uint32_t>(one_of(0, 6));
    params.seed = random();
    params.logprobs = static_cast<int>(one_of(0, 5));
    params.logit_bias = {{3, 5.0f}, {500, -100.0f}};
    params.stop_token_ids = {1, 3, 900};
    ReferenceHistory history;
    for (int i = 0; i < 50; ++i) history.prompt.push_back(token());
    for (uint32_t i = 0; i < random() % 12; ++i) history.output.push_back(token() % 20);

    const SampledToken actual = sampler.Sample(logits, params, history.ToHistory());
    const SampledToken expected = ReferenceSample(logits, params, history);
    ASSERT_EQ(actual.token, expected.token) << "round " << round;
    ASSERT_NEAR(actual.logprob, expected.logprob, 1e-5 * (1 + std::abs(expected.logprob)));
    ASSERT_EQ(actual.top.size(), expected.top.size());
    for (size_t i = 0; i < actual.top.size(); ++i) {
      ASSERT_EQ(actual.top[i].first, expected.top[i].first);
      ASSERT_NEAR(actual.top[i].second, expected.top[i].second, 1e-5 * (1 + std::abs(expected.top[i].second)));
    }
  }
}

TEST(SamplerTest, DrawsInProportionToProbability) {
  const std::vector<float> logits = RandomLogits(12, 1, 1.0f);
  SamplingParams params;
  params.temperature = 0.8f;
  constexpr int kDraws = 20000;
  std::map<TokenId, int> counts;
  Sampler sampler;
  for (int i = 0; i < kDraws; ++i) {
    params.seed = static_cast<uint64_t>(i);
    ++counts[sampler.Sample(logits, params, {}).token];
  }
  double chi_square = 0;
  for (const ReferenceToken& token : ReferenceDistribution(logits, params, {})) {
    const double expected = token.probability * kDraws;
    chi_square += (counts[token.id] - expected) * (counts[token.id] - expected) / expected;
  }
  EXPECT_LT(chi_square, 31.3);  // 11 degrees of freedom: exceeded by chance once in a thousand
}

TEST(SamplerTest, IsAPureFunctionOfSeedAndOutputIndex) {
  const std::vector<float> logits = RandomLogits(200, 2, 0.5f);
  SamplingParams params;
  params.seed = 99;
  Sampler used;
  for (uint32_t i = 0; i < 50; ++i) used.Sample(RandomLogits(300, i), params, {});
  EXPECT_EQ(used.Sample(logits, params, {}).token, Sampler().Sample(logits, params, {}).token);

  std::set<TokenId> by_index;
  ReferenceHistory history;
  for (int i = 0; i < 50; ++i) {
    by_index.insert(Sample(logits, params, history).token);
    history.output.push_back(0);
  }
  EXPECT_GT(by_index.size(), 20u);
  EXPECT_GT(TokensDrawn(logits, params, 50).size(), 20u);
}

TEST(SamplerTest, CountsPriorOutputOfAnEarlierAttemptAsOutput) {
  // A continued attempt adds the same history in one go; its next draw is the one that the first attempt would have
  // made.
  const std::vector<float> logits = RandomLogits(100, 3, 0.5f);
  SamplingParams params;
  params.presence_penalty = 1.0f;
  TokenHistory whole;
  whole.AddPrompt(std::vector<TokenId>{1, 2});
  Sampler sampler;
  std::vector<TokenId> output;
  for (int i = 0; i < 10; ++i) {
    output.push_back(sampler.Sample(logits, params, whole).token);
    whole.AddOutput(output.back());
  }
  TokenHistory resumed;
  resumed.AddPrompt(std::vector<TokenId>{1, 2});
  for (int i = 0; i < 6; ++i) resumed.AddOutput(output[static_cast<size_t>(i)]);
  EXPECT_EQ(sampler.Sample(logits, params, resumed).token, output[6]);
}

TEST(SamplerTest, GreedyTakesTheLowestIdOnTiesWithAndWithoutLogprobs) {
  std::vector<float> logits(3000, 0.0f);
  logits[2000] = logits[1500] = logits[2999] = 4.0f;
  SamplingParams params = Greedy();
  EXPECT_EQ(Sample(logits, params).token, 1500);
  params.logprobs = 2;
  const SampledToken sampled = Sample(logits, params);
  EXPECT_EQ(sampled.token, 1500);
  EXPECT_EQ(sampled.top[0].first, 1500);
  EXPECT_EQ(sampled.top[1].first, 2000);
}

TEST(SamplerTest, CutsKeepTheLowestIdsOnTies) {
  const std::vector<float> logits(10, 1.0f);
  SamplingParams params;
  params.top_k = 3;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0, 1, 2));
  params.top_k = 0;
  params.top_p = 0.35f;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0, 1, 2, 3));
}

TEST(SamplerTest, TopPTakesTheShareOfWhatTopKLeft) {
  // 0.4 0.3 0.2 0.1; after top_k 2: 4/7 3/7, so that 0.55 needs only the first, and without top_k both.
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  SamplingParams params;
  params.top_p = 0.55f;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0, 1));
  params.top_k = 2;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0));
}

TEST(SamplerTest, MinPComparesWithTheHighestProbability) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  SamplingParams params;
  params.min_p = 0.45f;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0, 1, 2));
  params.min_p = 1.0f;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0));
}

TEST(SamplerTest, RepetitionPenaltyCountsThePromptAndTheOthersDoNot) {
  SamplingParams params = Greedy();
  const std::vector<float> positive = {2.0f, 1.5f};
  const std::vector<float> negative = {-1.0f, -1.5f};
  params.repetition_penalty = 2.0f;
  EXPECT_EQ(Sample(positive, params).token, 0);
  EXPECT_EQ(Sample(positive, params, {.prompt = {0}, .output = {}}).token, 1);
  EXPECT_EQ(Sample(negative, params, {.prompt = {}, .output = {0}}).token, 1);

  params = Greedy();
  params.presence_penalty = 10.0f;
  params.frequency_penalty = 10.0f;
  EXPECT_EQ(Sample(positive, params, {.prompt = {0, 0}, .output = {}}).token, 0);
  EXPECT_EQ(Sample(positive, params, {.prompt = {}, .output = {0}}).token, 1);
}

TEST(SamplerTest, FrequencyPenaltyGrowsWithTheCountAndPresencePenaltyDoesNot) {
  const std::vector<float> logits = {2.0f, 1.0f};
  SamplingParams params = Greedy();
  params.frequency_penalty = 0.4f;
  EXPECT_EQ(Sample(logits, params, {.prompt = {}, .output = {0, 0}}).token, 0);
  EXPECT_EQ(Sample(logits, params, {.prompt = {}, .output = {0, 0, 0}}).token, 1);
  params.frequency_penalty = 0;
  params.presence_penalty = 0.4f;
  EXPECT_EQ(Sample(logits, params, {.prompt = {}, .output = {0, 0, 0}}).token, 0);
}

TEST(SamplerTest, LogitBiasForcesAndForbids) {
  const std::vector<float> logits = RandomLogits(50, 4);
  SamplingParams params;
  params.logit_bias = {{17, 100.0f}};
  EXPECT_THAT(TokensDrawn(logits, params, 200), ElementsAre(17));
  params.logit_bias = {{17, -100.0f}};
  EXPECT_FALSE(TokensDrawn(logits, params).contains(17));
  params.logit_bias = {{-1, 100.0f}, {50, 100.0f}};
  EXPECT_GT(TokensDrawn(logits, params).size(), 1u);
}

TEST(SamplerTest, MinTokensKeepsStopTokensOutUntilThen) {
  SamplingParams params = Greedy();
  params.stop_token_ids = {1, 3};
  params.min_tokens = 2;
  params.logit_bias = {{3, 100.0f}};
  const std::vector<float> logits = {0.0f, 9.0f, 1.0f, 8.0f};
  EXPECT_EQ(Sample(logits, params).token, 2);
  EXPECT_EQ(Sample(logits, params, {.prompt = {}, .output = {2}}).token, 2);
  EXPECT_EQ(Sample(logits, params, {.prompt = {}, .output = {2, 2}}).token, 3);
  params.temperature = 5.0f;
  EXPECT_THAT(TokensDrawn(logits, params), ElementsAre(0, 2));
}

TEST(SamplerTest, LogprobsAreThoseBeforePenaltiesBiasAndTemperature) {
  const std::vector<float> logits = {1.0f, 0.0f, -1.0f};
  const double log_sum = std::log(std::exp(1.0) + 1 + std::exp(-1.0));
  SamplingParams params;
  params.temperature = 0.01f;
  params.top_k = 1;
  params.logit_bias = {{2, 100.0f}};
  params.logprobs = 1;
  const SampledToken sampled = Sample(logits, params);
  EXPECT_EQ(sampled.token, 2);
  EXPECT_NEAR(sampled.logprob, -1.0 - log_sum, 1e-6);
  ASSERT_EQ(sampled.top.size(), 1u);
  EXPECT_EQ(sampled.top[0].first, 0);
  EXPECT_NEAR(sampled.top[0].second, 1.0 - log_sum, 1e-6);
}

TEST(SamplerTest, LogitsThatAreNotFiniteAreNeverPreferred) {
  std::vector<float> logits = {kNan, kInfinity, -3.0f, -kInfinity, -3.5f};
  EXPECT_EQ(Sample(logits, Greedy()).token, 2);
  SamplingParams params;
  params.logprobs = 5;
  EXPECT_THAT(TokensDrawn(logits, params, 200), ElementsAre(2, 4));
  const SampledToken sampled = Sample(logits, params);
  EXPECT_TRUE(std::isfinite(sampled.logprob));
  EXPECT_EQ(sampled.top[0].first, 2);
  EXPECT_EQ(sampled.top[1].first, 4);
}

TEST(SamplerTest, ABrokenModelCannotCrashIt) {
  for (const float broken : {kNan, kInfinity, -kInfinity, 3e38f, -3e38f}) {
    const std::vector<float> logits(100, broken);
    for (const float temperature : {0.0f, 1e-30f, 1.0f}) {
      SamplingParams params;
      params.temperature = temperature;
      params.logprobs = 3;
      params.repetition_penalty = 0.1f;
      params.top_p = 0.9f;
      params.logit_bias = {{5, 100.0f}};
      const SampledToken sampled = Sample(logits, params, {.prompt = {1}, .output = {2}});
      EXPECT_GE(sampled.token, 0);
      EXPECT_LT(sampled.token, 100);
      EXPECT_FALSE(std::isnan(sampled.logprob));
    }
  }
}

TEST(SamplerTest, SurvivesAVocabularyOfNothingButStopTokens) {
  SamplingParams params;
  params.stop_token_ids = {0, 1};
  params.min_tokens = 1;
  EXPECT_EQ(Sample({1.0f, 2.0f}, params).token, 0);
  EXPECT_EQ(Sample({1.0f, 2.0f}, Greedy()).token, 1);
}

TEST(SamplerTest, AgreesWithTheReferenceOnAHugeVocabulary) {
  constexpr size_t kVocabulary = 128256;
  Sampler sampler;
  for (const float spread : {0.0f, 0.5f, 3.0f}) {
    const std::vector<float> logits = RandomLogits(kVocabulary, 11, spread);
    for (const float top_p : {1.0f, 0.9f}) {
      for (const int top_k : {0, 50, 100000}) {
        SamplingParams params;
        params.top_p = top_p;
        params.top_k = top_k;
        params.seed = 5;
        params.logprobs = 3;
        const SampledToken actual = sampler.Sample(logits, params, {});
        EXPECT_EQ(actual.token, ReferenceSample(logits, params, {}).token) << spread << " " << top_p << " " << top_k;
      }
    }
  }
}

TEST(SamplingParamsTest, KnowsItsStopTokens) {
  SamplingParams params;
  EXPECT_FALSE(params.IsStop(0));
  params.stop_token_ids = {2, 5, 9};
  EXPECT_TRUE(params.IsStop(5));
  EXPECT_FALSE(params.IsStop(4));
}

}  // namespace
}  // namespace baton
