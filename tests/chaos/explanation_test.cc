// SPDX-License-Identifier: Apache-2.0
#include "explanation.h"

#include <gtest/gtest.h>

#include "common/steady_time.h"

namespace baton::testing {
namespace {

constexpr absl::Duration kNever = absl::InfiniteDuration();

SteadyTime At(double seconds) { return SteadyTime() + absl::Seconds(seconds); }
RequestSpan Request(double start, double end) { return {"r0", At(start), At(end)}; }

class ExplanationTest : public ::testing::Test {
 protected:
  static Deployment Workers(bool decode_prefills = false) {
    return {.prefill = {"p0", "p1"},
            .decode = {"d0", "d1"},
            .decode_prefills = decode_prefills,
            .worker_requests = 3,
            .max_attempts = 4};
  }
  static void Do(Disturbances& disturbances, const std::string& node, double from, double to,
                 const std::string& other = "") {
    disturbances.Begin("stop " + node, node, other, At(from));
    disturbances.End(node, other, At(to));
  }
  void Do(const std::string& node, double from, double to, const std::string& other = "") {
    Do(disturbances_, node, from, to, other);
  }

  Disturbances disturbances_{Workers()};
};

TEST_F(ExplanationTest, NothingIsExplainedByNothing) { EXPECT_EQ(disturbances_.SlackNeeded(Request(0, 9)), kNever); }

TEST_F(ExplanationTest, OneWorkerOfEachKindIsEnough) {
  Do("p0", 0, 9);
  Do("d1", 0, 9);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), kNever);
}

TEST_F(ExplanationTest, WithoutAnyWorkerOfAKindThereIsNoPair) {
  Do("d0", 0, 3);
  Do("d1", 2, 5);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(2.5, 9)), absl::ZeroDuration());
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), absl::ZeroDuration()) << "the moment at which it ends counts";
  EXPECT_EQ(disturbances_.SlackNeeded(Request(0, 1)), kNever) << "before";
}

TEST_F(ExplanationTest, ADisturbanceCountsForSomeSlackLonger) {
  Do("d0", 0, 1);
  Do("d1", 0, 3);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(0.5, 9)), absl::ZeroDuration());
  EXPECT_EQ(disturbances_.SlackNeeded(Request(2.5, 9)), absl::Seconds(1.5));
  EXPECT_EQ(disturbances_.SlackNeeded(Request(8, 9)), absl::Seconds(7)) << "the first worker is back sooner";
}

TEST_F(ExplanationTest, TheLossesNeedNotBeginTogether) {
  Do("d0", 0, 1);
  Do("d1", 2.5, 3);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(0, 9)), absl::Seconds(1.5)) << "when the second begins";
}

TEST_F(ExplanationTest, ConnectionsAreAsGoodAsTheirCutOnes) {
  Do("r0", 0, 9, "d0");
  Do("d1", 0, 9, "r0");
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), absl::ZeroDuration());
  RequestSpan through_another = Request(1, 2);
  through_another.router = "r1";
  EXPECT_EQ(disturbances_.SlackNeeded(through_another), kNever);
}

TEST_F(ExplanationTest, PairsNeedTheirOwnConnection) {
  Do("p0", 0, 9, "d0");
  Do("p1", 0, 9, "d1");
  Do("p0", 0, 9, "d1");
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), kNever) << "p1 and d0";
  Do("d0", 0, 9, "p1");
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), absl::ZeroDuration());
}

TEST_F(ExplanationTest, ADecodeWorkerThatPrefillsNeedsNoOther) {
  Disturbances disturbances(Workers(/*decode_prefills=*/true));
  Do(disturbances, "p0", 0, 9);
  Do(disturbances, "p1", 0, 9);
  Do(disturbances, "d0", 0, 9);
  EXPECT_EQ(disturbances.SlackNeeded(Request(1, 2)), kNever);
  Do(disturbances, "d1", 0, 9);
  EXPECT_EQ(disturbances.SlackNeeded(Request(1, 2)), absl::ZeroDuration());
}

TEST_F(ExplanationTest, TheRequestsOwnRouterIsOnTheWay) {
  Do("r1", 0, 9);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), kNever);
  Do("r0", 3, 4);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), kNever);
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 3)), absl::ZeroDuration());
  Disturbances cut(Workers());
  Do(cut, "client", 0, 9, "r0");
  EXPECT_EQ(cut.SlackNeeded(Request(1, 2)), absl::ZeroDuration());
}

TEST_F(ExplanationTest, WhatHasNotEndedGoesOn) {
  disturbances_.Begin("kill d0", "d0", "", At(0));
  disturbances_.Begin("kill d1", "d1", "", At(0));
  EXPECT_EQ(disturbances_.SlackNeeded(Request(100, 101)), absl::ZeroDuration());
}

TEST_F(ExplanationTest, QuarantineNeedsALostPeerOfEachDecodeWorker) {
  EXPECT_EQ(disturbances_.SlackNeededForQuarantine(Request(0, 9)), kNever);
  Do("p0", 0, 9, "d0");
  EXPECT_EQ(disturbances_.SlackNeededForQuarantine(Request(1, 2)), kNever) << "d1 sees all";
  Do("d1", 0, 9, "p1");
  EXPECT_EQ(disturbances_.SlackNeededForQuarantine(Request(1, 2)), absl::ZeroDuration());
  EXPECT_EQ(disturbances_.SlackNeeded(Request(1, 2)), kNever);
  Disturbances stopped(Workers());
  Do(stopped, "p0", 0, 9);
  EXPECT_EQ(stopped.SlackNeededForQuarantine(Request(1, 2)), absl::ZeroDuration()) << "both have lost sight of it";
}

TEST_F(ExplanationTest, AttemptsAreExhaustedByAsManyChanges) {
  Do("p0", 2, 3);
  Do("d0", 2, 3);
  EXPECT_TRUE(disturbances_.ExhaustAttempts(Request(1, 4), {}));
  EXPECT_FALSE(disturbances_.ExhaustAttempts(Request(1, 2.5), {}));
  EXPECT_FALSE(disturbances_.ExhaustAttempts(Request(2.5, 4), {}));
  EXPECT_TRUE(disturbances_.ExhaustAttempts(Request(2.5, 4), absl::Seconds(1)));
}

TEST_F(ExplanationTest, QueuesAreFullWithAsManyRequestsAtOnce) {
  const std::vector<RequestSpan> all = {Request(0, 3), Request(1, 2), Request(2.5, 4), Request(8, 9)};
  EXPECT_FALSE(disturbances_.FillQueues(all[0], all, {}));
  EXPECT_TRUE(disturbances_.FillQueues(all[0], all, absl::Seconds(1)));
  EXPECT_FALSE(disturbances_.FillQueues(all[3], all, absl::Seconds(1)));
}

}  // namespace
}  // namespace baton::testing
