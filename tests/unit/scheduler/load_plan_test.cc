// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/load_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace baton {
namespace {

constexpr StepCost kCost{.step = 0.01, .prompt_token = 0.001};  // a page of 16 tokens: 16 ms
using Found = std::vector<TierKind>;

TierSpeed Speed(double wait, double memory, double file, double queued = 0) {
  return {.wait_seconds = wait, .page_seconds = {memory, file}, .queued_seconds = queued};
}
int Pages(const Found& found, const TierSpeed& speed, const StepCost& cost = kCost, int groups = 1) {
  return PagesToLoad(
      {.found = found, .groups = groups, .page_tokens = 16, .position = 0, .pending = 1000, .chunk_tokens = 512}, speed,
      cost);
}

TEST(LoadPlan, LoadsAllPagesWhereEachLoadIsFasterThanComputing) {
  EXPECT_EQ(Pages(Found(10, TierKind::kFile), Speed(0.001, 0.0001, 0.001)), 10);
  EXPECT_EQ(Pages({}, Speed(0, 0, 0)), 0);
}

TEST(LoadPlan, LoadsNoneWhereComputingIsFaster) {
  EXPECT_EQ(Pages(Found(10, TierKind::kFile), Speed(0, 0.0001, 0.02)), 0);
}

TEST(LoadPlan, LoadsThePartThatPays) {
  const Found found = {TierKind::kMemory, TierKind::kMemory, TierKind::kFile, TierKind::kMemory};
  EXPECT_EQ(Pages(found, Speed(0, 0.001, 0.04)), 2) << "the last page saves 15 ms, the file's page costs 24 ms";
  EXPECT_EQ(Pages(found, Speed(0, 0.001, 0.03)), 4) << "the last page saves more than the file's page costs";
}

TEST(LoadPlan, AFewPagesDoNotPayForTheWait) {
  EXPECT_EQ(Pages(Found(2, TierKind::kMemory), Speed(0.05, 0.001, 0)), 0);
  EXPECT_EQ(Pages(Found(4, TierKind::kMemory), Speed(0.05, 0.001, 0)), 4);
}

TEST(LoadPlan, WaitsForLoadsBeforeIt) {
  EXPECT_EQ(Pages(Found(4, TierKind::kMemory), Speed(0, 0.001, 0, /*queued=*/0.05)), 4);
  EXPECT_EQ(Pages(Found(4, TierKind::kMemory), Speed(0, 0.001, 0, /*queued=*/0.07)), 0);
}

TEST(LoadPlan, NoLoadJoinsALoadThatHangs) {
  TierSpeed speed = Speed(0, 0.001, 0);
  speed.overdue_seconds = 0.9;
  EXPECT_EQ(Pages(Found(4, TierKind::kMemory), speed), 4);
  speed.overdue_seconds = 1.1;
  EXPECT_EQ(Pages(Found(4, TierKind::kMemory), speed), 0);
}

TEST(LoadPlan, ALoadRunsWhileOlderPromptsAreComputed) {
  const std::vector<TierKind> found(4, TierKind::kMemory);
  LoadQuestion question{.found = found, .page_tokens = 16, .pending = 1000, .chunk_tokens = 512};
  const TierSpeed speed = Speed(0, 0.001, 0, /*queued=*/0.3);
  EXPECT_EQ(PagesToLoad(question, speed, kCost), 0);
  question.tokens_ahead = 250;  // 0.26 s
  EXPECT_EQ(PagesToLoad(question, speed, kCost), 4);
  question.tokens_ahead = 200;  // 0.21 s: the load ends 94 ms later and saves 64 ms
  EXPECT_EQ(PagesToLoad(question, speed, kCost), 0);
}

TEST(LoadPlan, LaterPagesSaveMoreBecauseTheyAttendToMore) {
  const StepCost attends{.step = 0.01, .prompt_token = 0.0001, .prompt_attended = 1e-5};
  const Found found(40, TierKind::kFile);
  // The first page alone saves less than 3 ms, the last one about 100 ms.
  EXPECT_EQ(Pages({TierKind::kFile}, Speed(0, 0, 0.01), attends), 0);
  EXPECT_EQ(Pages(found, Speed(0, 0, 0.01), attends), 40);
}

TEST(LoadPlan, WhatIsNotKnownSpeaksForTheLoad) {
  EXPECT_EQ(Pages(Found(3, TierKind::kFile), Speed(0, 0, 10), StepCost{}), 3) << "no step was measured";
  EXPECT_EQ(Pages(Found(3, TierKind::kFile), Speed(0, 1, 0)), 3) << "no load was measured";
}

TEST(LoadPlan, LoadsThePagesOfAllGroupsOfATokenOrNone) {
  const Found found(7, TierKind::kMemory);
  EXPECT_EQ(Pages(found, Speed(0, 0.001, 0), kCost, /*groups=*/2), 6);
  EXPECT_EQ(Pages(found, Speed(0, 0.009, 0), kCost, /*groups=*/2), 0) << "two pages hold 16 tokens";
  EXPECT_EQ(Pages(found, Speed(0, 10, 0), StepCost{}, /*groups=*/2), 6);
}

TEST(LoadPlan, ComputingTakesAStepForEachChunk) {
  EXPECT_DOUBLE_EQ(SecondsToCompute(0, 512, 512, kCost), 0.01 + 0.512);
  EXPECT_DOUBLE_EQ(SecondsToCompute(0, 513, 512, kCost), 0.02 + 0.513);
  EXPECT_EQ(SecondsToCompute(0, 0, 512, kCost), 0);
}

}  // namespace
}  // namespace baton
