// SPDX-License-Identifier: Apache-2.0
// Load, reproducible from its seed: when requests arrive and what they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "cli/load/trace.h"

namespace baton {

enum class ArrivalProcess {
  kPoisson,
  kGamma,     // gaps of a gamma distribution
  kConstant,  // equal gaps
  kTrace,     // as recorded
};

struct Workload {
  std::string model;
  ArrivalProcess arrivals = ArrivalProcess::kPoisson;
  double rate = 4;        // requests per second
  double burstiness = 1;  // the shape of kGamma: 1 is kPoisson, less comes in bursts, more is more even
  int requests = 100;
  int prompt_tokens = 128;
  int output_tokens = 64;
  uint64_t seed = 0;
  uint32_t vocab_size = 0;
  std::optional<Trace> trace;  // replaces prompt_tokens and output_tokens
  std::string cache_salt;      // of all requests; empty: none
};

// Returns the arrival times from the start, ascending. kTrace needs a trace.
std::vector<absl::Duration> Arrivals(const Workload& workload);

// Returns the request that arrives as number `index`: a prompt of random token ids, and an answer that ends at its
// length and nowhere else. Blocks of a trace with the same id have the same tokens.
v1::GenerateRequest MakeRequest(const Workload& workload, int index);

// Returns a salt that no other run has, so that no earlier run's cached prefixes shorten this run's prefill.
std::string FreshCacheSalt();

}  // namespace baton
