// SPDX-License-Identifier: Apache-2.0
#include "common/step_cost.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace baton {
namespace {

constexpr StepCost kTruth{
    .step = 5e-3, .prompt_token = 2e-4, .decode_row = 3e-4, .prompt_attended = 1e-8, .decode_attended = 1e-7};

StepWork Decoding(int rows, int position) {
  StepWork work;
  for (int i = 0; i < rows; ++i) work.AddDecode(position);
  return work;
}

StepWork Mixed(int rows, int position, int chunk, int chunk_position) {
  StepWork work = Decoding(rows, position);
  work.AddPrompt(chunk_position, chunk);
  return work;
}

void ExpectNear(const StepCost& fit, const StepCost& truth, double share) {
  for (const StepWork& work : {Decoding(1, 100), Decoding(8, 2000), Mixed(0, 0, 512, 0), Mixed(4, 300, 128, 1024)}) {
    EXPECT_NEAR(fit.Seconds(work), truth.Seconds(work), share * truth.Seconds(work))
        << work.prompt_tokens << " prompt tokens beside " << work.decode_rows;
  }
}

TEST(StepWorkTest, ATokenAttendsToItselfAndAllBefore) {
  StepWork work;
  work.AddPrompt(/*position=*/10, /*tokens=*/3);
  EXPECT_EQ(work.prompt_attended, 11 + 12 + 13);
  work.AddDecode(/*position=*/4);
  EXPECT_EQ(work.prompt_attended, 11 + 12 + 13);
  EXPECT_EQ(work.decode_attended, 5);
  EXPECT_EQ(work.prompt_tokens, 3);
  EXPECT_EQ(work.decode_rows, 1);
}

TEST(StepCostTest, TheTwoKindsOfAttentionCountApart) {
  const StepCost cost{.step = 0, .prompt_token = 0, .decode_row = 0, .prompt_attended = 1, .decode_attended = 10};
  EXPECT_EQ(cost.Seconds(Mixed(/*rows=*/2, /*position=*/4, /*chunk=*/1, /*chunk_position=*/6)), 2 * 5 * 10 + 7);
}

TEST(FitStepCostTest, TellsTheTwoKindsOfAttentionApart) {
  std::vector<MeasuredStep> steps;
  for (const int position : {64, 1024}) {
    for (const int rows : {0, 1, 4, 16}) {
      for (const int chunk : {8, 128, 512}) steps.push_back({Mixed(rows, position, chunk, position), 0});
      if (rows > 0) steps.push_back({Decoding(rows, position), 0});
    }
  }
  for (MeasuredStep& step : steps) step.seconds = kTruth.Seconds(step.work);
  const StepCost fit = FitStepCost(steps);
  EXPECT_NEAR(fit.decode_attended, kTruth.decode_attended, 1e-9);
  EXPECT_NEAR(fit.prompt_attended, kTruth.prompt_attended, 1e-10);
  ExpectNear(fit, kTruth, 0.001);
}

TEST(FitStepCostTest, StepsOfOneKindGiveNoFigureOfTheOther) {
  std::vector<MeasuredStep> prompts;
  std::vector<MeasuredStep> decodings;
  for (const int count : {1, 4, 16, 64}) {
    for (const int position : {64, 1024, 4000}) {
      prompts.push_back({Mixed(0, 0, count, position), kTruth.Seconds(Mixed(0, 0, count, position))});
      decodings.push_back({Decoding(count, position), kTruth.Seconds(Decoding(count, position))});
    }
  }
  const StepCost of_prompts = FitStepCost(prompts);
  EXPECT_EQ(of_prompts.decode_row, 0);
  EXPECT_EQ(of_prompts.decode_attended, 0);
  EXPECT_NEAR(of_prompts.prompt_attended, kTruth.prompt_attended, 1e-9);
  const StepCost of_decodings = FitStepCost(decodings);
  EXPECT_EQ(of_decodings.prompt_token, 0);
  EXPECT_EQ(of_decodings.prompt_attended, 0);
  EXPECT_NEAR(of_decodings.decode_attended, kTruth.decode_attended, 1e-9);
}

TEST(StepCostTest, AChunkFillsTheTimeThatIsLeft) {
  for (const double square : {0.0, 1e-8, 1e-5}) {
    StepCost cost = kTruth;
    cost.prompt_attended = square;
    const StepWork work = Decoding(2, 50);
    const int tokens = cost.PromptTokensWithin(0.1, work, 700);
    StepWork fits = work;
    fits.AddPrompt(700, tokens);
    EXPECT_LE(cost.Seconds(fits), 0.1 + 1e-12);
    StepWork exceeds = work;
    exceeds.AddPrompt(700, tokens + 1);
    EXPECT_GT(cost.Seconds(exceeds), 0.1);
  }
  EXPECT_EQ(kTruth.PromptTokensWithin(0.001, Decoding(2, 50), 0), 0) << "less than the step takes without a chunk";
  EXPECT_GT(StepCost{}.PromptTokensWithin(0.1, {}, 0), 1 << 30) << "nothing is known";
  EXPECT_GT(kTruth.PromptTokensWithin(std::numeric_limits<double>::infinity(), {}, 0), 1 << 30);
}

TEST(StepCostEstimateTest, FindsTheCostUnderNoise) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(1, 0.05);
  StepCostEstimate estimate;
  for (int i = 0; i < 2000; ++i) {
    const int rows = static_cast<int>(random() % 12);
    const int chunk = random() % 4 == 0 ? static_cast<int>(random() % 512) : 0;
    const StepWork work = Mixed(rows, static_cast<int>(random() % 2000), chunk, static_cast<int>(random() % 2000));
    estimate.Add(work, kTruth.Seconds(work) * noise(random));
  }
  ExpectNear(estimate.Fit(), kTruth, 0.05);
}

TEST(StepCostEstimateTest, ManyStepsOfOneKindDoNotHideTheOthers) {
  StepCostEstimate estimate;
  for (const int chunk : {64, 128, 300, 512}) {
    const StepWork work = Mixed(0, 0, chunk, 0);
    estimate.Add(work, kTruth.Seconds(work));
  }
  for (int i = 0; i < 100000; ++i) {
    const StepWork work = Decoding(1 + i % 8, 200 + i % 3000);
    estimate.Add(work, kTruth.Seconds(work));
  }
  ExpectNear(estimate.Fit(), kTruth, 0.05);
}

TEST(StepCostEstimateTest, FollowsAMachineThatBecomesSlower) {
  StepCostEstimate estimate;
  StepCost slower = kTruth;
  slower.step *= 3;
  for (const StepCost& cost : {kTruth, slower}) {
    for (int i = 0; i < 200; ++i) {
      for (const StepWork& work :
           {Decoding(1, 100), Decoding(6, 900), Decoding(4, 3000), Mixed(2, 100, 256, 0), Mixed(0, 0, 512, 512)}) {
        estimate.Add(work, cost.Seconds(work));
      }
    }
  }
  ExpectNear(estimate.Fit(), slower, 0.02);
}

TEST(StepCostEstimateTest, ADisturbedStepHardlyCounts) {
  StepCostEstimate estimate;
  for (int i = 0; i < 50; ++i) {
    for (int rows = 1; rows <= 8; rows *= 2) estimate.Add(Decoding(rows, 100), kTruth.Seconds(Decoding(rows, 100)));
  }
  estimate.Add(Decoding(4, 100), 10);
  EXPECT_LT(estimate.Fit().Seconds(Decoding(4, 100)), 1.6 * kTruth.Seconds(Decoding(4, 100)));
}

TEST(StepCostEstimateTest, WhatNeverRanIsNotKnown) {
  StepCostEstimate estimate;
  EXPECT_FALSE(estimate.Fit().known());
  for (int rows = 1; rows <= 8; ++rows) estimate.Add(Decoding(rows, 100), kTruth.Seconds(Decoding(rows, 100)));
  const StepCost fit = estimate.Fit();
  EXPECT_TRUE(fit.known());
  EXPECT_EQ(fit.prompt_token, 0) << "no prompt ran";
  estimate.Add({}, 1);
  estimate.Add(Decoding(1, 100), 0);
  EXPECT_EQ(estimate.Fit().Seconds(Decoding(1, 1)), fit.Seconds(Decoding(1, 1))) << "empty steps do not count";
}

TEST(StepCostEstimateTest, NoFigureIsNegative) {
  StepCostEstimate estimate;  // larger batches are faster: not the shape of any cost
  for (int rows = 1; rows <= 64; rows *= 2) estimate.Add(Decoding(rows, 100), 0.1 / rows);
  const StepCost fit = estimate.Fit();
  EXPECT_GE(fit.step, 0);
  EXPECT_GE(fit.decode_row, 0);
  EXPECT_GE(fit.decode_attended, 0);
}

}  // namespace
}  // namespace baton
