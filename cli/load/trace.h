// SPDX-License-Identifier: Apache-2.0
// Recorded load: the arrivals of requests, their lengths, and their common prefixes. The first line tells the form.
//
// Mooncake's form (https://github.com/kvcache-ai/Mooncake) has a JSON object per line. The fields are timestamp in
// milliseconds, input_length, output_length, and hash_ids: an id for each block of 512 input tokens. Prompts with the
// same first ids have the same prefix.
//
// Azure's form (https://github.com/Azure/AzurePublicDataset) is CSV with the header TIMESTAMP,ContextTokens,
// GeneratedTokens. Prompts have nothing in common.
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
  std::vector<uint64_t> blocks;  // an id for every block_tokens tokens of the prompt; equal ids are equal text.
                                 // Empty: the text of this prompt alone
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

enum class TooLong { kSend, kCut, kDrop };

// Treats the requests whose prompt and answer together exceed `max_tokens`: kCut shortens the prompt, and if the prompt
// would be empty, the answer too; kDrop removes the request. Returns how many were too long.
int FitTrace(Trace& trace, TooLong treatment, int max_tokens);

// INVALID_ARGUMENT names the line, the field and what was expected.
absl::StatusOr<Trace> ParseTrace(std::string_view text, std::string_view origin, const TraceOptions& options);
absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& path, const TraceOptions& options);

}  // namespace baton
