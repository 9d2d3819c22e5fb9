// SPDX-License-Identifier: Apache-2.0
// The flags of `baton bench serve`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/client.h"
#include "cli/load/goodput_search.h"
#include "cli/load/load_generator.h"
#include "cli/load/slo.h"
#include "cli/load/workload.h"

namespace CLI {
class App;
}

namespace baton {

enum class LoadApi { kBaton, kOpenAi };

struct BenchServeFlags {
  std::string target = std::string(kDefaultTarget);
  std::optional<LoadApi> api;  // default: kOpenAi for a target that begins with http://
  std::string api_key_file;
  std::optional<uint32_t> vocab_size;
  std::optional<int> max_context_tokens;
  Workload workload;
  LoadOptions load;
  std::string timeout = "5m";
  std::string think_time = "1s";
  std::string duration;  // empty: as many requests as --requests says
  bool json = false;
  std::string aiperf_file;
  std::string html_file;
  bool reuse_cache = false;
  std::string trace;
  TraceOptions replay;
  TooLong too_long = TooLong::kSend;
  std::optional<ArrivalProcess> arrivals;
  bool has_rate = false;
  std::optional<Slo> slo;
  int runs = 1;
  bool goodput = false;
  GoodputOptions search;
  std::optional<absl::Duration> run_time;  // of --duration
};

// Adds the flags to `command`. `flags` must outlive the parse.
void AddBenchServeFlags(CLI::App& command, BenchServeFlags* flags);

// Fills the fields that depend on several flags. A usage error names the flag and what was expected.
absl::Status CompleteFlags(BenchServeFlags& flags);

}  // namespace baton
