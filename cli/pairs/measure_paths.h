// SPDX-License-Identifier: Apache-2.0
// Measures the path between the workers of each pair with pinned requests, for `doctor`.
//
// The first request of a pair computes its prompt: TTFT, and how much of the transfer came after the computation. Then
// the prefill worker caches a second prompt, and hands the cached pages over at once: the bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "cli/pairs/plan.h"

namespace baton {

class Client;
class Interrupt;

struct MeasureOptions {
  int prompt_tokens = 512;  // less if the model's context is short
  size_t max_pairs = 16;    // of a model and numerics id
  absl::Duration request_timeout = absl::Seconds(20);
  absl::Duration timeout = absl::Minutes(2);  // of all
  uint64_t seed = 0;                          // of the choice of pairs
};

// Times are in seconds.
struct MeasuredPath {
  WorkerPair pair = {};
  std::string failure = {};  // why there are no figures; empty: measured
  std::string transport = {};
  uint32_t prompt_tokens = 0;
  uint64_t kv_bytes = 0;  // of the prompt
  double ttft = 0;
  double transfer = 0;
  double exposed = 0;               // part of `transfer` after the computation
  double bytes_per_second = 0;      // 0: unknown
  bool waited_for_compute = false;  // the path may be faster than bytes_per_second
};

// A path is slow if it has less than this share of the median of the others.
inline constexpr double kSlowShare = 1.0 / 3;
// Returns the upper median; 0 without values.
double MedianOf(std::vector<double> values);

struct MeasuredPaths {
  std::vector<MeasuredPath> paths = {};
  size_t possible = 0;  // pairs with a path between two processes
};

// Measures the ready pairs, one after the other, and slow paths again: a busy machine makes any path slow for a moment.
// A pair that the time did not suffice for has a failure.
MeasuredPaths MeasurePaths(Client& client, const v1::GetStatusResponse& status, const v1::ListModelsResponse& models,
                           const MeasureOptions& options, Interrupt& interrupt);

}  // namespace baton
