// SPDX-License-Identifier: Apache-2.0
// Finds the goodput: the highest rate at which a given share of the requests meets the objectives. Pure but for the
// measurements, which the caller makes.
//
// The search doubles the rate until a rate misses the share, or halves the rate until a rate meets the share. Then the
// search bisects between the highest rate that met and the lowest that missed, at their geometric mean. A rate whose
// confidence interval contains the share is measured again, and its runs count together.
//
// Confidence intervals are Wilson's score intervals (E. B. Wilson, 1927), which stay within 0 and 1 and hold for shares
// near 1. Requests of one run share queues, so that an interval takes them for more independent than they are: repeated
// runs with other arrivals tell more.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace baton {

// How many of the requests met their objectives.
struct Attainment {
  size_t met = 0;
  size_t requests = 0;

  double share() const { return requests > 0 ? static_cast<double>(met) / static_cast<double>(requests) : 0; }
};

struct Interval {
  double low = 0;
  double high = 1;
};

// Returns the 95 % interval of the share behind a sample.
Interval WilsonInterval(const Attainment& sample);

struct GoodputOptions {
  double attain = 0.9;     // the share that must meet the objectives
  double first_rate = 4;   // requests per second
  double min_rate = 1e-3;  // lower and higher rates are not tried
  double max_rate = 1e5;
  double width = 0.05;  // the search ends when the bracket's upper end is at most 1 + width times its lower end
  int max_runs = 16;
  int runs_per_rate = 3;  // at most
};

// All runs at one rate together.
struct RateResult {
  double rate = 0;
  int runs = 0;
  Attainment attainment;
};

struct GoodputResult {
  std::vector<RateResult> rates;  // ascending
  // The highest rate that met the share, below every rate that missed. Nothing if no rate met the share.
  std::optional<double> goodput;
  std::optional<double> missed;  // the lowest rate that missed; nothing if no rate missed
  // The goodput's 95 % interval: from the highest rate whose interval lies above the share to the lowest rate whose
  // interval lies below. An end that no rate proves is missing.
  std::optional<double> surely_met;
  std::optional<double> surely_missed;
  bool is_narrow = false;  // the bracket is as narrow as asked; false: the runs or the rates were used up
};

// `measure` makes one run at a rate. Its error ends the search.
absl::StatusOr<GoodputResult> FindGoodput(const GoodputOptions& options,
                                          absl::FunctionRef<absl::StatusOr<Attainment>(double rate)> measure);

}  // namespace baton
