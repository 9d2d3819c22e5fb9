// SPDX-License-Identifier: Apache-2.0
#include "engine/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace baton {
namespace {

TEST(Rope, AnglesArePositionTimesFrequency) {
  const RopeTable table = BuildRopeTable({.theta = 10000.0}, 8, 2000);
  ASSERT_EQ(table.half_dim, 4);
  ASSERT_EQ(table.cos.size(), 2000U * 4);
  for (const int position : {0, 1, 7, 1999}) {
    for (int i = 0; i < 4; ++i) {
      const double angle = position * std::pow(10000.0, -i / 4.0);
      EXPECT_NEAR(table.cos[position * 4 + i], std::cos(angle), 1e-7) << position << " " << i;
      EXPECT_NEAR(table.sin[position * 4 + i], std::sin(angle), 1e-7) << position << " " << i;
    }
  }
}

TEST(Rope, LinearScalingStretchesPositions) {
  const RopeTable plain = BuildRopeTable({.theta = 10000.0}, 16, 64);
  const RopeTable scaled =
      BuildRopeTable({.theta = 10000.0, .scaling = RopeConfig::Scaling::kLinear, .factor = 4.0}, 16, 256);
  for (int position = 0; position < 64; ++position) {
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(plain.cos[position * 8 + i], scaled.cos[position * 4 * 8 + i], 1e-7);
  }
}

TEST(Rope, Llama3ScalingKeepsShortWavesAndSlowsLongOnes) {
  // Given the scaling of Llama 3.1
  const RopeConfig config = {.theta = 500000.0,
                             .scaling = RopeConfig::Scaling::kLlama3,
                             .factor = 8.0,
                             .low_freq_factor = 1.0,
                             .high_freq_factor = 4.0,
                             .original_max_position = 8192};
  const std::vector<double> plain = RopeFrequencies({.theta = 500000.0}, 128);
  const std::vector<double> scaled = RopeFrequencies(config, 128);
  int kept = 0;
  int blended = 0;
  int slowed = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * M_PI / plain[i];
    if (wavelength < 8192 / 4.0) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i]);
      ++kept;
    } else if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 8);
      ++slowed;
    } else {
      EXPECT_LT(scaled[i], plain[i]);
      EXPECT_GT(scaled[i], plain[i] / 8);
      ++blended;
    }
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(blended, 6);
  EXPECT_EQ(slowed, 29);
}

TEST(Rope, HoldsAtTheLastPositionOfTheLongestModel) {
  const RopeTable table = BuildRopeTable({.theta = 1e6}, 2, 1000000);
  EXPECT_NEAR(table.cos.back(), std::cos(999999.0), 1e-6);
  EXPECT_NEAR(table.sin.back(), std::sin(999999.0), 1e-6);
}

}  // namespace
}  // namespace baton
