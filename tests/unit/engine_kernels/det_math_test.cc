// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/det_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace baton {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double RelativeError(double got, double want) { return std::abs(got - want) / std::abs(want); }

TEST(DetMathTest, FloatExpIsWithinTwoUnitsOfLibmOverItsNormalRange) {
  double worst = 0;
  for (float x = -86.9f; x < 88.7f; x += 0.00373f) {
    worst = std::max(worst, RelativeError(DetExp(x), std::exp(double{x})));
  }
  EXPECT_LT(worst, 2e-7);
}

TEST(DetMathTest, FloatExpOfSpecialValues) {
  EXPECT_EQ(DetExp(0.0f), 1.0f);
  EXPECT_EQ(DetExp(-0.0f), 1.0f);
  EXPECT_EQ(DetExp(-kInf), 0.0f);
  EXPECT_EQ(DetExp(-200.0f), 0.0f);
  EXPECT_EQ(DetExp(kInf), kInf);
  EXPECT_EQ(DetExp(89.0f), kInf);
  EXPECT_TRUE(std::isnan(DetExp(NAN)));
  EXPECT_LT(RelativeError(DetExp(88.7228f), std::exp(double{88.7228f})), 2e-7);
  EXPECT_LT(RelativeError(DetExp(-87.0f), std::exp(-87.0)), 2e-7);
}

TEST(DetMathTest, ExpOfASpanIsExpOfEach) {
  std::vector<float> x = {-1000.0f, -3.5f, 0.0f, 0.1f, 1.0f, 80.0f, 1000.0f};
  std::vector<float> out(x.size(), NAN);
  DetExp(x, out);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i], DetExp(x[i]));
}

TEST(DetMathTest, FloatLogRoundsTheDoubleOne) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-126, 127);
  for (int i = 0; i < 20000; ++i) {
    const float x = static_cast<float>(std::exp2(exponent(random)));
    const float want = static_cast<float>(std::log(double{x}));
    EXPECT_LE(std::abs(DetLog(x) - want), std::abs(want) * 1.2e-7) << x;
  }
  EXPECT_EQ(DetLog(1.0f), 0.0f);
  EXPECT_EQ(DetLog(0.0f), -kInf);
  EXPECT_EQ(DetLog(kInf), kInf);
  EXPECT_TRUE(std::isnan(DetLog(-1.0f)));
  EXPECT_TRUE(std::isnan(DetLog(NAN)));
}

TEST(DetMathTest, DoubleExpAndLogMatchLibm) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> argument(-707, 709);
  for (int i = 0; i < 50000; ++i) {
    const double x = argument(random);
    EXPECT_LT(RelativeError(DetExp(x), std::exp(x)), 1e-15) << x;
    const double y = std::exp(x);
    if (x != 0) {
      EXPECT_LT(RelativeError(DetLog(y), std::log(y)), 1e-15) << y;
    }
  }
  for (double x = 0.5; x < 2; x += 0.0001) {
    if (std::abs(x - 1) < 1e-9) continue;
    EXPECT_LT(RelativeError(DetLog(x), std::log(x)), 2e-15) << x;
  }
  EXPECT_LT(RelativeError(DetLog(5e-324), std::log(5e-324)), 1e-15);
  EXPECT_EQ(DetExp(-1000.0), 0.0);
  EXPECT_TRUE(std::isinf(DetExp(710.0)));
  EXPECT_TRUE(std::isnan(DetExp(std::nan(""))));
}

TEST(DetMathTest, PowMatchesLibmWhereRopeTablesNeedIt) {
  for (const double theta : {10000.0, 500000.0, 1e6}) {
    for (int i = 0; i < 128; ++i) {
      EXPECT_LT(RelativeError(DetPow(theta, -i / 128.0), std::pow(theta, -i / 128.0)), 1e-13);
    }
  }
  EXPECT_EQ(DetPow(0.0, 2.0), 0.0);
  EXPECT_EQ(DetPow(0.0, 0.0), 1.0);
  EXPECT_LT(RelativeError(DetPow(2.0, 10.0), 1024.0), 1e-13);
}

TEST(DetMathTest, SinAndCosMatchLibmForLongContexts) {
  std::mt19937_64 random(3);
  for (const double range : {1.0, 100.0, 1e4, 1e6}) {
    std::uniform_real_distribution<double> argument(-range, range);
    for (int i = 0; i < 20000; ++i) {
      const double x = argument(random);
      EXPECT_LT(std::abs(DetSin(x) - std::sin(x)), 1e-15) << x;
      EXPECT_LT(std::abs(DetCos(x) - std::cos(x)), 1e-15) << x;
    }
  }
  EXPECT_EQ(DetSin(0.0), 0.0);
  EXPECT_EQ(DetCos(0.0), 1.0);
  for (int i = 0; i < 1000; ++i) {  // next to the multiples of pi/2, where the reduction cancels
    const double x = i * 1.5707963267948966;
    EXPECT_LT(std::abs(DetSin(x) - std::sin(x)), 1e-15) << i;
    EXPECT_LT(std::abs(DetCos(x) - std::cos(x)), 1e-15) << i;
  }
  EXPECT_TRUE(std::isnan(DetSin(2e6)));
  EXPECT_TRUE(std::isnan(DetCos(std::nan(""))));
}

}  // namespace
}  // namespace baton
