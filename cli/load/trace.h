// Recorded load: when requests came, how long they were, and what they had in common. JSON lines as Mooncake published
// them (https://github.com/kvcache-ai/Mooncake): timestamp in milliseconds, input_length, output_length, and hash_ids,
// one for each block of 512 input tokens; prompts with the same first ids begin alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton {

struct TraceRequest {
  absl::Duration arrival;  // from the first one's
  int input_tokens = 0;
  int output_tokens = 0;
  std::vector<uint64_t> blocks;
};

struct Trace {
  int block_tokens = 0;
  std::vector<TraceRequest> requests;  // by arrival
};

struct TraceOptions {
  int max_requests = 100;
  double length_scale = 1;  // of all numbers of tokens
  double speed = 1;         // of time
};

// INVALID_ARGUMENT names the line and the field, and what was expected.
absl::StatusOr<Trace> ParseTrace(std::string_view text, std::string_view origin, const TraceOptions& options);
absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& path, const TraceOptions& options);

}  // namespace baton
