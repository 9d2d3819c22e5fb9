// SPDX-License-Identifier: Apache-2.0
// Recorded load: the arrivals of requests, their lengths, and their common prefixes.
//
// A trace has a JSON object per line, in the form that Mooncake published (https://github.com/kvcache-ai/Mooncake). The
// fields are timestamp in milliseconds, input_length, output_length, and hash_ids: an id for each block of 512 input
// tokens. Prompts with the same first ids have the same prefix.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton {

struct TraceRequest {
  absl::Duration arrival;  // time since the first request
  int input_tokens = 0;
  int output_tokens = 0;
  std::vector<uint64_t> blocks;  // an id for every block_tokens tokens of the prompt; equal ids are equal text
};

struct Trace {
  int block_tokens = 0;
  std::vector<TraceRequest> requests;  // sorted by arrival
};

struct TraceOptions {
  int max_requests = 100;
  double length_scale = 1;  // factor for all numbers of tokens
  double speed = 1;         // 2 replays the trace in half the time
};

// INVALID_ARGUMENT names the line, the field and what was expected.
absl::StatusOr<Trace> ParseTrace(std::string_view text, std::string_view origin, const TraceOptions& options);
absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& path, const TraceOptions& options);

}  // namespace baton
