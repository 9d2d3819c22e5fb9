// SPDX-License-Identifier: Apache-2.0
// An Attempt is a checked request to a worker: the wire's AttemptHeader in the scheduler's types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "engine/kv/page_hash.h"
#include "engine/sampling/sampler.h"
#include "engine/types.h"

namespace baton::v1 {
class AttemptHeader;
}

namespace baton {

enum class Priority : uint8_t { kInteractive, kBatch };

struct Attempt {
  AttemptKey key;
  absl::Time due;  // of the request: decides the age (worker/schedule.h)
  std::vector<TokenId> prompt;
  std::vector<TokenId> prior_output;  // of earlier attempts; output, not prompt
  SamplingParams sampling;
  std::optional<PageHash> page_hash_root;  // none: shares no pages
  std::string trace_id;                    // of W3C Trace Context, for logs; may be empty
  bool is_probe = false;                   // a router's test of a pair, not a client's request
  absl::Duration tpot_slo;                 // objective for the time per output token; 0: none
  Priority priority = Priority::kInteractive;
  std::string tenant;
  absl::Duration first_token_within = absl::InfiniteDuration();  // later, the attempt fails as too late

  // Tokens whose KV a prefill computes.
  int context_tokens() const { return static_cast<int>(prompt.size() + prior_output.size()); }
};

// The worker's model and the limits of an attempt.
struct AttemptLimits {
  std::string model;
  std::string numerics_id;
  int vocab_size = 0;
  int max_context_tokens = 0;
  int pool_tokens = 0;       // pages_total * page_tokens
  bool prefix_cache = true;  // else no request shares pages
};

// FAILED_PRECONDITION names both versions if `protocol`, a request's version of the worker protocol, is not ours.
absl::Status CheckProtocol(uint32_t protocol);

// FAILED_PRECONDITION for another protocol version, model or numerics_id; INVALID_ARGUMENT names the field, its value
// and the limit.
absl::StatusOr<Attempt> ParseAttempt(const v1::AttemptHeader& header, const AttemptLimits& limits);

}  // namespace baton
