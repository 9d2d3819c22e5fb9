// SPDX-License-Identifier: Apache-2.0
// Statistics over measured times.
#pragma once

#include <cstddef>
#include <vector>

namespace baton {

// Returns the value below which a fraction `q` in [0, 1] of `sorted` lies, by linear interpolation between the nearest
// ranks. `sorted` is ascending and not empty.
double Percentile(const std::vector<double>& sorted, double q);

struct LatencySummary {
  size_t count = 0;  // when 0, the other fields are 0, too
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};
LatencySummary Summarize(std::vector<double> values);

}  // namespace baton
