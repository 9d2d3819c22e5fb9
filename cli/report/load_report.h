// SPDX-License-Identifier: Apache-2.0
// The summary of a load run, as a table and as JSON.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/load/load_generator.h"
#include "cli/load/slo.h"

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

struct LoadErrors {
  size_t count = 0;
  std::string first_reason;  // of the first failure that has a reason
};

// How many requests met their objectives. A request that failed or was not sent met none; an answer of one token has no
// TPOT, and meets that objective.
struct SloReport {
  Slo slo;
  size_t requests = 0;  // measured, those not sent included
  size_t ttft_met = 0;
  size_t tpot_met = 0;
  size_t met = 0;      // both
  double goodput = 0;  // requests per second that met both
};

// Latencies are in seconds, of the requests that ended OK.
struct LoadReport {
  size_t completed = 0;
  std::map<std::string, LoadErrors> errors;  // by status code; "NOT_SENT" for the requests over max_in_flight
  double duration_seconds = 0;
  double requests_per_second = 0;       // completed requests
  double output_tokens_per_second = 0;  // of completed requests
  uint64_t prompt_tokens = 0;           // of completed requests
  uint64_t cached_tokens = 0;           // those of prompt_tokens that no worker had to compute
  LatencySummary ttft;
  LatencySummary tpot;  // per request with at least two tokens: the mean gap after the first
  // Gaps between consecutive tokens, of all requests together. A message of n tokens that comes g after the message
  // before counts as n gaps of g / n. The first message has no gap.
  LatencySummary itl;
  LatencySummary end_to_end;
  std::optional<SloReport> slo;  // if asked for
};

LoadReport MakeReport(const LoadResult& result, const std::optional<Slo>& slo = std::nullopt);

// A latency without a measurement is "-" in the table and null in JSON.
std::string ToTable(const Workload& workload, const LoadOptions& options, const LoadReport& report);
// Returns one line without its newline. Times are in seconds.
std::string ToJson(const std::string& target, const Workload& workload, const LoadReport& report);

}  // namespace baton
