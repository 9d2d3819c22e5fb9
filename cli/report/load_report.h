// What a load run is summed up to, as a table and as JSON.
#pragma once

#include <map>
#include <string>

#include "cli/load/load_generator.h"
#include "cli/report/latency_summary.h"

namespace baton {

struct LoadErrors {
  size_t count = 0;
  std::string first_reason;  // of the first that had one
};

// Latencies in seconds, of the requests that ended OK.
struct LoadReport {
  size_t completed = 0;
  std::map<std::string, LoadErrors> errors;  // by status code; "NOT_SENT" for those over max_in_flight
  double duration_seconds = 0;
  double requests_per_second = 0;       // completed
  double output_tokens_per_second = 0;  // of completed requests
  uint64_t prompt_tokens = 0;           // likewise
  uint64_t cached_tokens = 0;           // likewise, of the prompts'
  LatencySummary ttft;
  LatencySummary tpot;  // mean gap after the first token, of requests with at least two
  LatencySummary itl;   // gaps between consecutive tokens, of all requests together
  LatencySummary end_to_end;
};

LoadReport MakeReport(const LoadResult& result);

// What was never measured is "-" in the table, null in JSON.
std::string ToTable(const Workload& workload, const LoadReport& report);
// One line, with times in seconds.
std::string ToJson(const std::string& target, const Workload& workload, const LoadReport& report);

}  // namespace baton
