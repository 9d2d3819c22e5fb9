// SPDX-License-Identifier: Apache-2.0
// Checks a client's request and fills in every default.
//
// Pure functions. Errors name the field, its value and the limit. An unsupported field of the API is INVALID_ARGUMENT,
// like any other value that cannot be served.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/worker.pb.h"
#include "engine/types.h"
#include "router/objectives.h"
#include "router/pin.h"
#include "text/assets/model_assets.h"

namespace baton::router {

// Decides about a request that would come too late, or would make others come too late.
enum class WhenLate : uint8_t { kRefuse, kServe };

struct RequestSpec {
  std::string model;
  std::string assets_fingerprint;
  std::vector<TokenId> prompt;
  v1::EngineSampling sampling;  // max_tokens and seed filled in; stop_token_ids sorted, end tokens among them
  std::vector<std::string> stop;
  bool skip_special_tokens = true;
  std::string cache_salt;  // only requests of one salt and tenant share KV pages
  Objectives objectives = {};
  std::string tenant = {};
  bool is_batch = false;  // priority batch
  WhenLate when_late = WhenLate::kRefuse;
  std::optional<Pin> pin = {};
};

struct ModelLimits {
  uint32_t vocab_size = 0;
  uint32_t max_context_tokens = 0;
  uint32_t max_sequence_tokens = 0;  // prompt and output that the largest pair of workers can hold
  uint32_t max_prompt_tokens = 0;    // 0: no further limit
  uint32_t page_tokens = 0;          // the workers' page size; 0: no pages
};

// Checks all fields that can be checked without the model.
absl::Status CheckRequest(const v1::GenerateRequest& request);

// Values for a request that does not give its own.
struct RequestDefaults {
  uint64_t seed = 0;
  Objectives objectives = {};  // of interactive requests
  WhenLate when_late = WhenLate::kRefuse;
};

// `request` must pass CheckRequest.
absl::StatusOr<RequestSpec> ResolveRequest(const v1::GenerateRequest& request, const ModelAssets& assets,
                                           const ModelLimits& limits, const RequestDefaults& defaults);

}  // namespace baton::router
