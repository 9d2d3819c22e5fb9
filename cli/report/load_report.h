// SPDX-License-Identifier: Apache-2.0
// The summary of a load run, as a table and as JSON.
#pragma once

#include <map>
#include <string>

#include "cli/load/load_generator.h"
#include "cli/report/latency_summary.h"

namespace baton {

struct LoadErrors {
  size_t count = 0;
  std::string first_reason;  // of the first failure that has a reason
};

// Latencies are in seconds, of the requests that ended OK.
struct LoadReport {
  size_t completed = 0;
  std::map<std::string, LoadErrors> errors;  // by status code; "NOT_SENT" for the requests over max_in_flight
  double duration_seconds = 0;
  double requests_per_second = 0;       // completed requests
  double output_tokens_per_second = 0;  // of completed requests
  uint64_t prompt_tokens = 0;           // of completed requests
  uint64_t cached_tokens = 0;           // of prompt_tokens
  LatencySummary ttft;
  LatencySummary tpot;  // per request with at least two tokens: the mean gap after the first
  // Gaps between consecutive tokens, of all requests together. A message of n tokens that comes g after the message
  // before counts as n gaps of g / n. The first message has no gap.
  LatencySummary itl;
  LatencySummary end_to_end;
};

LoadReport MakeReport(const LoadResult& result);

// A latency without a measurement is "-" in the table and null in JSON.
std::string ToTable(const Workload& workload, const LoadReport& report);
// Returns one line without its newline. Times are in seconds.
std::string ToJson(const std::string& target, const Workload& workload, const LoadReport& report);

}  // namespace baton
