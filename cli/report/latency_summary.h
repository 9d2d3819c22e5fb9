// Statistics over measured times.
#pragma once

#include <cstddef>
#include <vector>

namespace baton {

// The value below which a fraction `q` in [0, 1] of `sorted` (ascending, not empty) lies, interpolated linearly between
// the two nearest ranks.
double Percentile(const std::vector<double>& sorted, double q);

struct LatencySummary {
  size_t count = 0;  // with 0 the rest is 0
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};
LatencySummary Summarize(std::vector<double> values);

}  // namespace baton
