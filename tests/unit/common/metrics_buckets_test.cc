// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_buckets.h"

#include <prometheus/counter.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

// A distribution of latencies by its shape; Cdf(x / scale) is that of one `scale` times as long.
struct Shape {
  std::string name;
  std::function<double(double)> cdf;
};

double NormalCdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2)); }

Shape LogNormal(double sigma) {
  return {Concat("log-normal, sigma ", sigma),
          [sigma](double x) { return x <= 0 ? 0 : NormalCdf(std::log(x) / sigma); }};
}

// The regularized incomplete gamma function by its power series.
Shape Gamma(double shape) {
  return {Concat("gamma, shape ", shape), [shape](double x) {
            if (x <= 0) return 0.0;
            double term = 1 / shape;
            double sum = term;
            for (int n = 1; n < 1000 && term > sum * 1e-16; ++n) sum += term *= x / (shape + n);
            int sign = 0;
            return std::min(1.0, sum * std::exp(shape * std::log(x) - x - lgamma_r(shape, &sign)));
          }};
}

// Spreads from a little less than an exponential distribution's, which is Gamma(1), upward.
std::vector<Shape> Shapes() {
  return {LogNormal(0.8), LogNormal(1), LogNormal(1.5), LogNormal(2), Gamma(1), Gamma(0.75), Gamma(0.5)};
}

double Quantile(const Shape& shape, double p) {
  double low = 1e-9;
  double high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double middle = std::sqrt(low * high);
    (shape.cdf(middle) < p ? low : high) = middle;
  }
  return low;
}

// As histogram_quantile: linear within a bucket, the first of which begins at 0; the last boundary beyond all of them.
double Estimate(const std::vector<double>& boundaries, const Shape& shape, double scale, double p) {
  double lower = 0;
  double below = 0;
  for (const double upper : boundaries) {
    const double until = shape.cdf(upper / scale);
    if (until >= p) return lower + (upper - lower) * (p - below) / (until - below);
    lower = upper;
    below = until;
  }
  return boundaries.back();
}

// The largest error of an estimated p95 over p95s in [from, to], as a share of the true one.
double WorstError(const std::vector<double>& boundaries, const Shape& shape, double from, double to) {
  constexpr int kSteps = 2000;
  const double unit = Quantile(shape, 0.95);
  double worst = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double truth = from * std::pow(to / from, static_cast<double>(i) / kSteps);
    worst = std::max(worst, std::abs(Estimate(boundaries, shape, truth / unit, 0.95) / truth - 1));
  }
  return worst;
}

TEST(BucketSetTest, AnInterpolatedP95IsRightWithin5PercentWhereTheSetSaysSo) {
  for (const BucketSet& set : AllBucketSets()) {
    for (const Shape& shape : Shapes()) {
      EXPECT_LE(WorstError(set.boundaries, shape, set.resolved_from, set.resolved_to), 0.05)
          << set.quantity << "; " << shape.name;
    }
  }
}

// The check above is one: boundaries that double are too coarse for it.
TEST(BucketSetTest, BoundariesThatDoubleWouldNotDo) {
  std::vector<double> doubling;
  for (double b = 0.001; b < 10; b *= 2) doubling.push_back(b);
  EXPECT_GT(WorstError(doubling, Gamma(1), 0.001, 1), 0.05);
}

TEST(BucketSetTest, TheSetsTogetherResolveATenthOfAMillisecondToTenMinutes) {
  std::vector<std::pair<double, double>> ranges;
  for (const BucketSet& set : AllBucketSets()) {
    if (set.quantity != BatchBuckets().quantity) ranges.emplace_back(set.resolved_from, set.resolved_to);
  }
  std::sort(ranges.begin(), ranges.end());
  EXPECT_LE(ranges.front().first, 0.0001);
  double reached = ranges.front().second;
  for (const auto& [from, to] : ranges) {
    EXPECT_LE(from, reached);
    reached = std::max(reached, to);
  }
  EXPECT_GE(reached, 600);
}

TEST(BucketSetTest, NoSetHasMoreThan24Boundaries) {
  for (const BucketSet& set : AllBucketSets()) {
    EXPECT_LE(set.boundaries.size(), 24u) << set.quantity;
    EXPECT_TRUE(std::is_sorted(set.boundaries.begin(), set.boundaries.end(), std::less_equal<double>()))
        << set.quantity;
  }
}

// The values of le on a page that has a histogram with these boundaries, "+Inf" left out.
std::vector<std::string> PrintedBoundaries(const BucketSet& set) {
  prometheus::Registry registry;
  prometheus::BuildHistogram().Name("h").Register(registry).Add({}, set.boundaries).Observe(1);
  const std::string page = prometheus::TextSerializer().Serialize(registry.Collect());
  std::vector<std::string> printed;
  const std::string mark = "le=\"";
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    printed.push_back(page.substr(begin, page.find('"', begin) - begin));
  }
  if (!printed.empty() && printed.back() == "+Inf") printed.pop_back();
  return printed;
}

TEST(BucketSetTest, BoundariesPrintExactlyAndShort) {
  for (const BucketSet& set : AllBucketSets()) {
    const std::vector<std::string> printed = PrintedBoundaries(set);
    ASSERT_EQ(printed.size(), set.boundaries.size());
    for (size_t i = 0; i < printed.size(); ++i) {
      double value = 0;
      ASSERT_TRUE(absl::SimpleAtod(printed[i], &value)) << printed[i];
      EXPECT_EQ(value, set.boundaries[i]);
      std::string digits = printed[i].substr(0, printed[i].find('e'));
      digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
      digits.erase(0, digits.find_first_not_of('0'));
      digits.erase(digits.find_last_not_of('0') + 1);
      EXPECT_LE(digits.size(), 3u) << printed[i];
    }
  }
}

}  // namespace
}  // namespace baton
