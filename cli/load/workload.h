// Load, reproducible from its seed: when requests arrive and what they ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "cli/load/trace.h"

namespace baton {

struct Workload {
  std::string model;
  double rate = 4;  // requests per second
  int requests = 100;
  int prompt_tokens = 128;
  int output_tokens = 64;
  uint64_t seed = 0;
  uint32_t vocab_size = 0;
  std::optional<Trace> trace;  // instead of rate and numbers of tokens
};

// Arrival times from the start, ascending: the trace's, or a Poisson process of `rate`.
std::vector<absl::Duration> Arrivals(const Workload& workload);

// The request that arrives as number `index`: a prompt of random token ids and an answer of exactly as many tokens as
// it shall have. Blocks of a trace with the same id have the same tokens.
v1::GenerateRequest MakeRequest(const Workload& workload, int index);

}  // namespace baton
