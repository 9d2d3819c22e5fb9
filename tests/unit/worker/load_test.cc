// SPDX-License-Identifier: Apache-2.0
#include "worker/load.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(MeanSpeedTest, IsOfRecentSteps) {
  MeanSpeed speed;
  EXPECT_EQ(speed.tokens_per_second(), 0);
  speed.Add(512, 0.5);
  EXPECT_DOUBLE_EQ(speed.tokens_per_second(), 1024);
  for (int i = 0; i < 100; ++i) speed.Add(512, 0.25);
  EXPECT_NEAR(speed.tokens_per_second(), 2048, 1);
}

TEST(MeanSpeedTest, StepsOfFewTokensDoNotMakeAWorkerLookSlow) {
  MeanSpeed speed;
  speed.Add(2, 0.02);
  EXPECT_EQ(speed.tokens_per_second(), 0) << "a probe measures nothing";
  speed.Add(512, 0.5);
  for (int i = 0; i < 100; ++i) speed.Add(8, 0.02);
  EXPECT_DOUBLE_EQ(speed.tokens_per_second(), 1024);
}

}  // namespace
}  // namespace baton
