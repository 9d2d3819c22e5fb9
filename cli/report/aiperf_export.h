// SPDX-License-Identifier: Apache-2.0
// A load run in the form of AIPerf's profile_export_aiperf.json, schema 1.1
// (https://docs.nvidia.com/aiperf/reference/json-export-schema), for tools that read AIPerf's results.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/load/load_generator.h"
#include "cli/report/load_report.h"

namespace baton {

struct AiperfRun {
  std::string benchmark_id;
  absl::Time start;
  absl::Time end;
  bool was_cancelled = false;
};

// AIPerf's inter_token_latency is TPOT here. A metric without a value is left out. Ends with a newline.
std::string ToAiperfJson(const LoadResult& result, const LoadReport& report, const AiperfRun& run);

}  // namespace baton
