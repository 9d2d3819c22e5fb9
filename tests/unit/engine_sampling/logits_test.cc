// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling/logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "special_floats.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<float> RandomValues(size_t size, uint32_t seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(ArgMaxTest, FindsTheHighestWhereverItStands) {
  for (const size_t size : {1u, 15u, 16u, 17u, 1023u, 1024u, 1025u, 5000u}) {
    std::vector<float> values = RandomValues(size, 1, 1.0f);
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      std::vector<float> changed = values;
      changed[place] = 100.0f;
      EXPECT_EQ(ArgMax(changed), static_cast<TokenId>(place)) << size;
    }
  }
}

TEST(ArgMaxTest, TakesTheLowestIdOnTies) {
  std::vector<float> values(5000, 1.0f);
  EXPECT_EQ(ArgMax(values), 0);
  for (const size_t place : {4999u, 3000u, 1500u, 1499u, 1030u, 3u}) {
    values[place] = 2.0f;
    EXPECT_EQ(ArgMax(values), static_cast<TokenId>(place));
  }
}

TEST(ArgMaxTest, PassesOverWhatIsNotFinite) {
  EXPECT_EQ(ArgMax(std::vector<float>{kNan, kInfinity, -5.0f, -kInfinity, -4.0f}), 4);
  EXPECT_EQ(ArgMax(std::vector<float>{kNan, kInfinity, -kInfinity}), 0);
  EXPECT_EQ(ArgMax(std::vector<float>{}), 0);
}

TEST(CopyFiniteTest, PutsTheLowestForWhatIsNotFinite) {
  std::vector<float> out(5);
  CopyFinite(std::vector<float>{kNan, kInfinity, -kInfinity, 1.5f, -0.0f}, out);
  EXPECT_THAT(out, ElementsAre(kLowestLogit, kLowestLogit, kLowestLogit, 1.5f, 0.0f));
}

TEST(HighestTest, KeepsTheLowestIdsOnTies) {
  EXPECT_THAT(Highest(std::vector<float>{1, 3, 2, 3, 2, 2}, 4),
              ElementsAre(Pair(1, 3), Pair(3, 3), Pair(2, 2), Pair(4, 2)));
  EXPECT_THAT(Highest(std::vector<float>{1, 2}, 5), ElementsAre(Pair(1, 2), Pair(0, 1)));
  EXPECT_TRUE(Highest(std::vector<float>{1, 2}, 0).empty());
}

TEST(ExponentialsTest, AddUpAsInDoublePrecisionForAnyLength) {
  std::vector<float> exponentials;
  for (const size_t size : {1u, 15u, 16u, 17u, 33u, 1000u, 128000u}) {
    const std::vector<float> values = RandomValues(size, 2, 3.0f);
    const float max = Max(values);
    double expected = 0;
    for (const float value : values) expected += std::exp((static_cast<double>(value) - max) / 0.7);
    Exponentials(values, max, 0.7f, exponentials);
    EXPECT_EQ(exponentials.size(), size);
    EXPECT_NEAR(Sum(exponentials) / expected, 1.0, 2e-6) << size;
  }
}

}  // namespace
}  // namespace baton
