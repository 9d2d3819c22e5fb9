// SPDX-License-Identifier: Apache-2.0
#include "worker/attempt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "baton/v1/worker.pb.h"
#include "common/status_macros.h"
#include "common/trace_context.h"

namespace baton {
namespace {

constexpr int kMaxLogprobs = 20;
constexpr int kMaxLogitBiases = 1024;
constexpr int kMaxStopTokens = 1024;
constexpr size_t kMaxTenantBytes = 64;

absl::Status Invalid(absl::string_view field, const auto& value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", expected ", expected));
}

absl::Status CheckToken(absl::string_view field, TokenId token, const AttemptLimits& limits) {
  if (token >= 0 && token < limits.vocab_size) return absl::OkStatus();
  return Invalid(field, token, absl::StrCat("a token id in [0, ", limits.vocab_size, ")"));
}

absl::Status CheckRange(absl::string_view field, float value, float low, float high) {
  if (std::isfinite(value) && value >= low && value <= high) return absl::OkStatus();
  return Invalid(field, value, absl::StrCat("a number in [", low, ", ", high, "]"));
}

absl::StatusOr<SamplingParams> ParseSampling(const v1::EngineSampling& wire, const AttemptLimits& limits) {
  BATON_RETURN_IF_ERROR(CheckRange("sampling.temperature", wire.temperature(), 0, 1e6f));
  BATON_RETURN_IF_ERROR(CheckRange("sampling.top_p", wire.top_p(), 1e-9f, 1));
  BATON_RETURN_IF_ERROR(CheckRange("sampling.min_p", wire.min_p(), 0, 1));
  BATON_RETURN_IF_ERROR(CheckRange("sampling.repetition_penalty", wire.repetition_penalty(), 1e-6f, 1e6f));
  BATON_RETURN_IF_ERROR(CheckRange("sampling.presence_penalty", wire.presence_penalty(), -1e3f, 1e3f));
  BATON_RETURN_IF_ERROR(CheckRange("sampling.frequency_penalty", wire.frequency_penalty(), -1e3f, 1e3f));
  if (wire.top_k() < 0) return Invalid("sampling.top_k", wire.top_k(), "0 or more");
  if (wire.max_tokens() == 0) return Invalid("sampling.max_tokens", 0, "1 or more");
  if (wire.logit_bias_size() > kMaxLogitBiases) {
    return Invalid("sampling.logit_bias size", wire.logit_bias_size(), absl::StrCat("at most ", kMaxLogitBiases));
  }
  if (wire.stop_token_ids_size() > kMaxStopTokens) {
    return Invalid("sampling.stop_token_ids size", wire.stop_token_ids_size(),
                   absl::StrCat("at most ", kMaxStopTokens));
  }
  if (wire.has_logprobs() && wire.logprobs() > kMaxLogprobs) {
    return Invalid("sampling.logprobs", wire.logprobs(), absl::StrCat("at most ", kMaxLogprobs));
  }

  SamplingParams params;
  params.temperature = wire.temperature();
  params.top_k = wire.top_k();
  params.top_p = wire.top_p();
  params.min_p = wire.min_p();
  params.repetition_penalty = wire.repetition_penalty();
  params.presence_penalty = wire.presence_penalty();
  params.frequency_penalty = wire.frequency_penalty();
  params.seed = wire.seed();
  params.max_tokens = wire.max_tokens();
  params.min_tokens = wire.min_tokens();
  if (wire.has_logprobs()) params.logprobs = static_cast<int>(wire.logprobs());
  for (const auto& [token, bias] : wire.logit_bias()) {
    BATON_RETURN_IF_ERROR(CheckToken("sampling.logit_bias", token, limits));
    BATON_RETURN_IF_ERROR(CheckRange("sampling.logit_bias value", bias, -1e6f, 1e6f));
    params.logit_bias.emplace_back(token, bias);
  }
  std::sort(params.logit_bias.begin(), params.logit_bias.end());
  for (TokenId token : wire.stop_token_ids()) {
    BATON_RETURN_IF_ERROR(CheckToken("sampling.stop_token_ids", token, limits));
    params.stop_token_ids.push_back(token);
  }
  std::sort(params.stop_token_ids.begin(), params.stop_token_ids.end());
  return params;
}

absl::Status CheckSizes(const Attempt& attempt, const AttemptLimits& limits) {
  if (attempt.prompt.empty()) return Invalid("prompt_token_ids size", 0, "1 or more");
  if (attempt.prior_output.size() >= attempt.sampling.max_tokens) {
    return Invalid("prior_output_token_ids size", attempt.prior_output.size(),
                   absl::StrCat("less than max_tokens, ", attempt.sampling.max_tokens));
  }
  const uint64_t total = uint64_t{attempt.prompt.size()} + attempt.sampling.max_tokens;
  if (total > static_cast<uint64_t>(limits.max_context_tokens)) {
    return Invalid("prompt_token_ids size + max_tokens", total,
                   absl::StrCat("at most the model's context, ", limits.max_context_tokens));
  }
  if (total > static_cast<uint64_t>(limits.pool_tokens)) {
    return Invalid("prompt_token_ids size + max_tokens", total,
                   absl::StrCat("at most the worker's KV pool, ", limits.pool_tokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProtocol(uint32_t protocol) {
  if (protocol == v1::WORKER_PROTOCOL_CURRENT) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("protocol is ", protocol, ", this worker speaks ", static_cast<int>(v1::WORKER_PROTOCOL_CURRENT)));
}

absl::StatusOr<Attempt> ParseAttempt(const v1::AttemptHeader& header, const AttemptLimits& limits) {
  BATON_RETURN_IF_ERROR(CheckProtocol(header.protocol()));
  if (header.model() != limits.model) {
    return absl::FailedPreconditionError(
        absl::StrCat("model is \"", header.model(), "\", this worker serves \"", limits.model, "\""));
  }
  if (header.numerics_id() != limits.numerics_id) {
    return absl::FailedPreconditionError(absl::StrCat("numerics_id is \"", header.numerics_id(),
                                                      "\", this worker computes \"", limits.numerics_id, "\""));
  }
  Attempt attempt;
  BATON_ASSIGN_OR_RETURN(attempt.key.request, RequestId::FromBytes(header.request_id()));
  attempt.key.attempt = header.attempt();
  if (attempt.key.attempt == 0) return Invalid("attempt", 0, "1 or more");
  attempt.due = absl::FromUnixNanos(header.due_unix_nanos());
  attempt.is_probe = header.is_probe();
  if (!(header.tpot_slo_seconds() >= 0)) return Invalid("tpot_slo_seconds", header.tpot_slo_seconds(), "0 or more");
  attempt.tpot_slo = absl::Seconds(header.tpot_slo_seconds());
  attempt.priority = header.priority() == v1::PRIORITY_BATCH ? Priority::kBatch : Priority::kInteractive;
  if (!(header.first_token_within_seconds() >= 0)) {
    return Invalid("first_token_within_seconds", header.first_token_within_seconds(), "0 or more");
  }
  if (header.first_token_within_seconds() > 0) {
    attempt.first_token_within = absl::Seconds(header.first_token_within_seconds());
  }
  if (header.tenant().size() > kMaxTenantBytes) {
    return Invalid("tenant length", header.tenant().size(), absl::StrCat("at most ", kMaxTenantBytes, " bytes"));
  }
  attempt.tenant = header.tenant();
  if (const auto trace = TraceContext::Parse(header.traceparent())) attempt.trace_id = trace->trace_id;

  for (TokenId token : header.prompt_token_ids()) BATON_RETURN_IF_ERROR(CheckToken("prompt_token_ids", token, limits));
  for (TokenId token : header.prior_output_token_ids()) {
    BATON_RETURN_IF_ERROR(CheckToken("prior_output_token_ids", token, limits));
  }
  attempt.prompt.assign(header.prompt_token_ids().begin(), header.prompt_token_ids().end());
  attempt.prior_output.assign(header.prior_output_token_ids().begin(), header.prior_output_token_ids().end());
  BATON_ASSIGN_OR_RETURN(attempt.sampling, ParseSampling(header.sampling(), limits));
  BATON_RETURN_IF_ERROR(CheckSizes(attempt, limits));

  if (const std::string& root = header.page_hash_root(); !root.empty()) {
    if (root.size() != sizeof(PageHash)) return Invalid("page_hash_root length", root.size(), "32 bytes or none");
    if (limits.prefix_cache) std::memcpy(attempt.page_hash_root.emplace().data(), root.data(), root.size());
  }
  return attempt;
}

}  // namespace baton
