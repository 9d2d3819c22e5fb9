// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace baton {
namespace {

using Counter = std::array<uint32_t, 4>;

// The known answers that the authors publish with their implementation.
TEST(PhiloxTest, GivesThePublishedAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformDrawTest, DependsOnEveryPartOfItsKey) {
  const std::set<double> draws = {UniformDraw(1, 0, 0), UniformDraw(uint64_t{1} << 32, 0, 0), UniformDraw(1, 1, 0),
                                  UniformDraw(1, 0, 1)};
  EXPECT_EQ(draws.size(), 4u);
  EXPECT_EQ(UniformDraw(1, 2, 3), UniformDraw(1, 2, 3));
}

TEST(UniformDrawTest, FillsTheUnitInterval) {
  constexpr int kDraws = 10000;
  double sum = 0;
  double lowest = 1;
  double highest = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = UniformDraw(42, 0, static_cast<uint32_t>(i));
    sum += draw;
    lowest = std::min(lowest, draw);
    highest = std::max(highest, draw);
  }
  EXPECT_GE(lowest, 0.0);
  EXPECT_LT(highest, 1.0);
  EXPECT_LT(lowest, 0.001);
  EXPECT_GT(highest, 0.999);
  EXPECT_NEAR(sum / kDraws, 0.5, 0.015);  // five standard deviations
}

}  // namespace
}  // namespace baton
