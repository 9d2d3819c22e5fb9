// SPDX-License-Identifier: Apache-2.0
// The latencies of a load run, request by request: what summaries, plots and exports are made of.
#pragma once

#include <optional>
#include <vector>

#include "cli/load/load_generator.h"

namespace baton {

// Of a request that succeeded. Times are in seconds.
struct RequestLatency {
  double start = 0;  // the planned arrival, from the first measured arrival
  std::optional<double> ttft;
  std::optional<double> tpot;  // with at least two tokens: the mean gap after the first
  double end_to_end = 0;
  int turn = 0;
  int output_tokens = 0;
  bool is_short = false;  // the answer has fewer tokens than asked for
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;
};

struct LoadSeries {
  std::vector<RequestLatency> requests;  // in the order in which they ended
  // Gaps between consecutive tokens, of all requests together. A message of n tokens that comes g after the message
  // before counts as n gaps of g / n. The first message has no gap.
  std::vector<double> itl;
};

LoadSeries MakeSeries(const LoadResult& result);

// Returns the values of the requests that have one, ascending.
std::vector<double> Sorted(const LoadSeries& series, std::optional<double> RequestLatency::* value);
std::vector<double> SortedEndToEnd(const LoadSeries& series);

// Returns the value below which a fraction `q` in [0, 1] of `sorted` lies, by linear interpolation between the nearest
// ranks. `sorted` is ascending and not empty.
double Percentile(const std::vector<double>& sorted, double q);

// Steps of the number of requests under way, failed ones included: at each time, in seconds, the number from then on.
struct InFlightStep {
  double at = 0;
  int requests = 0;
};
std::vector<InFlightStep> InFlight(const LoadResult& result);

}  // namespace baton
