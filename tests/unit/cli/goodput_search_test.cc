// SPDX-License-Identifier: Apache-2.0
#include "cli/load/goodput_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(WilsonInterval, IsTheTextbooksOne) {
  const Interval tenth = WilsonInterval({.met = 1, .requests = 10});
  EXPECT_NEAR(tenth.low, 0.0179, 1e-4);
  EXPECT_NEAR(tenth.high, 0.4042, 1e-4);
  const Interval all = WilsonInterval({.met = 100, .requests = 100});
  EXPECT_NEAR(all.low, 0.9630, 1e-4);
  EXPECT_DOUBLE_EQ(all.high, 1);
  EXPECT_DOUBLE_EQ(WilsonInterval({}).low, 0);
  EXPECT_DOUBLE_EQ(WilsonInterval({}).high, 1);
}

// A server that meets the objectives of all requests up to `capacity`, and of ever fewer beyond.
double Curve(double rate, double capacity) { return rate <= capacity ? 1 : std::exp(-4 * (rate / capacity - 1)); }

TEST(FindGoodput, BracketsTheRateAtWhichTheShareFalls) {
  // Curve falls below 90 % at 1.0263 times the capacity.
  for (const double capacity : {0.013, 0.7, 4.0, 5.0, 300.0}) {
    std::vector<double> tried;
    const auto measure = [&](double rate) -> absl::StatusOr<Attainment> {
      tried.push_back(rate);
      return Attainment{.met = static_cast<size_t>(std::lround(1e6 * Curve(rate, capacity))), .requests = 1'000'000};
    };
    ASSERT_OK_AND_ASSIGN(const GoodputResult result, FindGoodput({.width = 0.02, .max_runs = 40}, measure));
    ASSERT_TRUE(result.goodput && result.missed);
    EXPECT_TRUE(result.is_narrow);
    EXPECT_LE(*result.goodput, capacity * 1.0267);
    EXPECT_GE(*result.missed, capacity * 1.0262);
    EXPECT_LE(*result.missed, *result.goodput * 1.02);
    EXPECT_LE(*result.surely_met, *result.goodput);
    EXPECT_GE(*result.surely_missed, *result.missed);
    EXPECT_LE(*result.surely_missed, *result.surely_met * 1.05);
    EXPECT_EQ(tried.front(), 4);
  }
}

TEST(FindGoodput, CoversTheTruthWhenEveryRunIsNoisy) {
  constexpr double kTruth = 8 * 1.02634;
  std::mt19937_64 random(7);
  int covered = 0;
  double worst = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const auto measure = [&](double rate) -> absl::StatusOr<Attainment> {
      std::binomial_distribution<int> draw(200, Curve(rate, 8));
      return Attainment{.met = static_cast<size_t>(draw(random)), .requests = 200};
    };
    ASSERT_OK_AND_ASSIGN(const GoodputResult result, FindGoodput({.max_runs = 40}, measure));
    ASSERT_TRUE(result.goodput && result.surely_met && result.surely_missed);
    EXPECT_LE(*result.surely_met, *result.goodput * 1.0001);
    EXPECT_LT(*result.surely_met, *result.surely_missed);
    covered += *result.surely_met <= kTruth && kTruth <= *result.surely_missed ? 1 : 0;
    worst = std::max(worst, std::abs(*result.goodput / kTruth - 1));
  }
  EXPECT_GE(covered, 90);
  EXPECT_LT(worst, 0.15);
}

TEST(FindGoodput, MeasuresADoubtfulRateAgainAndCountsItsRunsTogether) {
  // The first run at a rate of 4 misses by chance.
  int runs_at_4 = 0;
  const auto measure = [&](double rate) -> absl::StatusOr<Attainment> {
    if (rate > 4) return Attainment{.met = 10, .requests = 100};
    return Attainment{.met = ++runs_at_4 == 1 ? 88u : 97u, .requests = 100};
  };
  ASSERT_OK_AND_ASSIGN(const GoodputResult result, FindGoodput({.width = 1}, measure));
  EXPECT_EQ(result.goodput, 4);
  EXPECT_EQ(result.rates.front().runs, 3);
  EXPECT_EQ(result.rates.front().attainment.requests, 300u);
  EXPECT_EQ(result.rates.front().attainment.met, 282u);
}

TEST(FindGoodput, ARateThatMeetsAboveOneThatMissesDoesNotCount) {
  const auto measure = [](double rate) -> absl::StatusOr<Attainment> {
    return Attainment{.met = rate > 5 && rate < 6 ? 50u : rate < 7.9 ? 1000u : 0u, .requests = 1000};
  };
  ASSERT_OK_AND_ASSIGN(const GoodputResult result, FindGoodput({.max_runs = 30}, measure));
  EXPECT_LE(*result.goodput, 5.01);
}

TEST(FindGoodput, EndsWhereNoRateMeetsOrNoRateMisses) {
  std::vector<double> tried;
  double share = 0;
  const auto measure = [&](double rate) -> absl::StatusOr<Attainment> {
    tried.push_back(rate);
    return Attainment{.met = static_cast<size_t>(share * 1000), .requests = 1000};
  };
  ASSERT_OK_AND_ASSIGN(const GoodputResult none, FindGoodput({.min_rate = 1}, measure));
  EXPECT_THAT(tried, ElementsAre(4, 2, 1));
  EXPECT_FALSE(none.goodput.has_value());
  EXPECT_EQ(none.missed, 1);
  EXPECT_EQ(none.surely_missed, 1);
  EXPECT_FALSE(none.surely_met.has_value());

  share = 1;
  tried.clear();
  ASSERT_OK_AND_ASSIGN(const GoodputResult all, FindGoodput({.max_rate = 20}, measure));
  EXPECT_THAT(tried, ElementsAre(4, 8, 16, 20));
  EXPECT_EQ(all.goodput, 20);
  EXPECT_FALSE(all.missed.has_value());
  EXPECT_FALSE(all.is_narrow);
}

TEST(FindGoodput, StopsAtMaxRunsAndAtAnError) {
  int runs = 0;
  const auto doubtful = [&](double /*rate*/) -> absl::StatusOr<Attainment> {
    ++runs;
    return Attainment{.met = 9, .requests = 10};
  };
  ASSERT_OK_AND_ASSIGN(const GoodputResult result, FindGoodput({.max_runs = 5}, doubtful));
  EXPECT_EQ(runs, 5);
  EXPECT_FALSE(result.is_narrow);
  const auto broken = [](double rate) -> absl::StatusOr<Attainment> {
    if (rate > 5) return absl::CancelledError("interrupted");
    return Attainment{.met = 1000, .requests = 1000};
  };
  EXPECT_TRUE(Fails(FindGoodput({}, broken), absl::StatusCode::kCancelled, "interrupted"));
}

}  // namespace
}  // namespace baton
