// Synthetic load, reproducible from its seed: when requests arrive and what they ask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"

namespace baton {

struct Workload {
  std::string model;
  double rate = 4;  // requests per second
  int requests = 100;
  int prompt_tokens = 128;
  int output_tokens = 64;
  uint64_t seed = 0;
  uint32_t vocab_size = 0;
};

// Arrival times from the start, ascending: a Poisson process of `rate`.
std::vector<absl::Duration> PoissonArrivals(const Workload& workload);

// The request that arrives as number `index`: a prompt of random token ids and an answer of exactly output_tokens.
v1::GenerateRequest MakeRequest(const Workload& workload, int index);

}  // namespace baton
