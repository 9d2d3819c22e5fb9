// SPDX-License-Identifier: Apache-2.0
// The summary of a load run, as a table and as JSON.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/load/goodput_search.h"
#include "cli/load/load_generator.h"
#include "cli/load/slo.h"
#include "cli/report/load_series.h"

namespace baton {

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
  size_t requests = 0;  // measured, those not sent and skipped turns included
  size_t ttft_met = 0;
  size_t tpot_met = 0;
  size_t met = 0;      // both
  double goodput = 0;  // requests per second that met both
};

// The requests of one turn of the conversations, as far as they succeeded.
struct TurnReport {
  size_t completed = 0;
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of prompt_tokens
  LatencySummary ttft;
};

// Latencies are in seconds, of the requests that succeeded.
struct LoadReport {
  size_t completed = 0;
  std::map<std::string, LoadErrors> errors;  // see RequestEnd; "NOT_SENT": the requests over max_in_flight;
                                             // "SKIPPED_TURN": turns after a turn that failed
  double duration_seconds = 0;
  double requests_per_second = 0;       // completed requests
  double output_tokens_per_second = 0;  // of completed requests
  uint64_t prompt_tokens = 0;           // of completed requests
  uint64_t cached_tokens = 0;           // those of prompt_tokens that no worker had to compute
  size_t short_answers = 0;             // answers with fewer tokens than asked for
  size_t unknown_answers = 0;           // see LoadResult
  LatencySummary ttft;
  LatencySummary tpot;  // see RequestLatency
  LatencySummary itl;   // see LoadSeries
  LatencySummary end_to_end;
  std::optional<SloReport> slo;   // if asked for
  std::vector<TurnReport> turns;  // of conversations with several turns
};

LoadReport MakeReport(const LoadResult& result, const std::optional<Slo>& slo = std::nullopt);

// Returns a line with its newline about the load that is sent.
std::string LoadLine(const Workload& workload, const LoadOptions& options);

// A latency without a measurement is "-" in the table and null in JSON.
std::string ToTable(const Workload& workload, const LoadOptions& options, const LoadReport& report);
// Returns one line without its newline. Times are in seconds.
std::string ToJson(const std::string& target, const Workload& workload, const LoadOptions& options,
                   const LoadReport& report);

}  // namespace baton
