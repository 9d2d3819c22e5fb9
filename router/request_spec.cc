// SPDX-License-Identifier: Apache-2.0
#include "router/request_spec.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "router/chat_input.h"

namespace baton::router {
namespace {

constexpr size_t kMaxLabelBytes = 128;
constexpr size_t kMaxSaltBytes = 256;
constexpr size_t kMaxTenantBytes = 64;
constexpr int kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 256;
constexpr int kMaxStopTokens = 64;
constexpr int kMaxBiasedTokens = 1024;
constexpr uint32_t kMaxLogprobs = 20;
constexpr size_t kMaxWorkerIdBytes = 256;

template <typename T>
absl::Status Invalid(const std::string& field, const T& value, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, "; expected ", expected));
}

absl::Status NotSupported(const std::string& field) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": not supported yet; leave it unset"));
}

absl::Status CheckUnsupported(const v1::GenerateRequest& request) {
  if (request.has_adapter_id()) return NotSupported("adapter_id");
  if (request.has_n() && request.n() != 1) return Invalid("n", request.n(), "1 (more choices are not supported yet)");
  if (request.has_prompt_logprobs()) return NotSupported("prompt_logprobs");
  if (request.has_response_format()) return NotSupported("response_format");
  return absl::OkStatus();
}

absl::Status CheckInput(const v1::GenerateRequest& request) {
  switch (request.input_case()) {
    case v1::GenerateRequest::kPrompt:
    case v1::GenerateRequest::kChat: return absl::OkStatus();
    case v1::GenerateRequest::kTokenIds:
      if (request.token_ids().ids().empty()) return Invalid("token_ids.ids", "empty", "at least one token id");
      return absl::OkStatus();
    case v1::GenerateRequest::INPUT_NOT_SET: break;
  }
  return Invalid("input", "none", "one of prompt, chat, token_ids");
}

// A range that never holds NaN.
struct Range {
  float min;
  float max;
  const char* words;

  bool Contains(float value) const { return value >= min && value <= max; }
};

// The workers' lower limit.
constexpr float kMinTopP = 1e-9f;

// The limits must not be wider than the workers' (worker/attempt.cc): a worker must not refuse a checked request.
absl::Status CheckNumbers(const v1::SamplingParams& p) {
  const auto check = [](const char* name, bool has, float value, const Range& range) -> absl::Status {
    if (!has || range.Contains(value)) return absl::OkStatus();
    return Invalid(absl::StrCat("sampling.", name), value, range.words);
  };
  const Range penalty{-2, 2, "-2 to 2"};
  BATON_RETURN_IF_ERROR(check("temperature", p.has_temperature(), p.temperature(), {0, 1e6f, "0 to 1e6"}));
  BATON_RETURN_IF_ERROR(check("top_p", p.has_top_p(), p.top_p(), {kMinTopP, 1, "1e-9 to 1"}));
  BATON_RETURN_IF_ERROR(check("min_p", p.has_min_p(), p.min_p(), {0, 1, "0 to 1"}));
  BATON_RETURN_IF_ERROR(
      check("repetition_penalty", p.has_repetition_penalty(), p.repetition_penalty(), {1e-6f, 1e6f, "1e-6 to 1e6"}));
  BATON_RETURN_IF_ERROR(check("presence_penalty", p.has_presence_penalty(), p.presence_penalty(), penalty));
  BATON_RETURN_IF_ERROR(check("frequency_penalty", p.has_frequency_penalty(), p.frequency_penalty(), penalty));
  if (p.has_top_k() && p.top_k() < 0) return Invalid("sampling.top_k", p.top_k(), "0 or more");
  for (const auto& [id, bias] : p.logit_bias()) {
    if (!Range{-100, 100, ""}.Contains(bias)) {
      return Invalid(absl::StrCat("sampling.logit_bias[", id, "]"), bias, "-100 to 100");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStops(const v1::SamplingParams& p) {
  if (p.stop_size() > kMaxStopStrings) {
    return Invalid("sampling.stop", absl::StrCat(p.stop_size(), " strings"), absl::StrCat("at most ", kMaxStopStrings));
  }
  for (int i = 0; i < p.stop_size(); ++i) {
    const size_t bytes = p.stop(i).size();
    if (bytes == 0 || bytes > kMaxStopBytes) {
      return Invalid(absl::StrCat("sampling.stop[", i, "]"), absl::StrCat(bytes, " bytes"),
                     absl::StrCat("1 to ", kMaxStopBytes));
    }
  }
  if (p.stop_token_ids_size() > kMaxStopTokens) {
    return Invalid("sampling.stop_token_ids", absl::StrCat(p.stop_token_ids_size(), " ids"),
                   absl::StrCat("at most ", kMaxStopTokens));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const v1::SamplingParams& p) {
  if (p.logit_bias_size() > kMaxBiasedTokens) {
    return Invalid("sampling.logit_bias", absl::StrCat(p.logit_bias_size(), " entries"),
                   absl::StrCat("at most ", kMaxBiasedTokens));
  }
  if (p.has_logprobs() && p.logprobs() > kMaxLogprobs) {
    return Invalid("sampling.logprobs", p.logprobs(), absl::StrCat("at most ", kMaxLogprobs));
  }
  if (p.has_max_tokens() && p.max_tokens() == 0) return Invalid("sampling.max_tokens", 0, "at least 1");
  if (p.has_max_tokens() && p.min_tokens() > p.max_tokens()) {
    return Invalid("sampling.min_tokens", p.min_tokens(), absl::StrCat("at most max_tokens (", p.max_tokens(), ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckTokenId(const std::string& field, TokenId id, uint32_t vocab_size) {
  if (id >= 0 && static_cast<uint32_t>(id) < vocab_size) return absl::OkStatus();
  return Invalid(field, id, absl::StrCat("a token id, 0 to ", vocab_size - 1));
}

absl::Status CheckTokenIds(const v1::GenerateRequest& request, uint32_t vocab_size) {
  const auto& ids = request.token_ids().ids();
  for (int i = 0; i < ids.size(); ++i) {
    BATON_RETURN_IF_ERROR(CheckTokenId(absl::StrCat("token_ids.ids[", i, "]"), ids[i], vocab_size));
  }
  const v1::SamplingParams& p = request.sampling();
  for (int i = 0; i < p.stop_token_ids_size(); ++i) {
    BATON_RETURN_IF_ERROR(
        CheckTokenId(absl::StrCat("sampling.stop_token_ids[", i, "]"), p.stop_token_ids(i), vocab_size));
  }
  for (const auto& [id, bias] : p.logit_bias()) {
    BATON_RETURN_IF_ERROR(CheckTokenId("sampling.logit_bias: token id", id, vocab_size));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> PromptTokens(const v1::GenerateRequest& request, const ModelAssets& assets) {
  if (request.has_token_ids()) {
    return std::vector<TokenId>(request.token_ids().ids().begin(), request.token_ids().ids().end());
  }
  if (request.has_prompt()) return assets.tokenizer->Encode(request.prompt(), /*add_special_tokens=*/true);
  BATON_ASSIGN_OR_RETURN(const Conversation conversation, ReadChat(request.chat(), "chat"));
  BATON_ASSIGN_OR_RETURN(const std::string rendered, assets.RenderChat(conversation, "chat"));
  // The template writes the special tokens itself.
  return assets.tokenizer->Encode(rendered, /*add_special_tokens=*/false);
}

const char* InputField(const v1::GenerateRequest& request) {
  if (request.has_token_ids()) return "token_ids";
  return request.has_chat() ? "chat" : "prompt";
}

// Checks that prompt and output fit, and fills max_tokens.
absl::Status ResolveLength(const v1::GenerateRequest& request, const ModelLimits& limits, RequestSpec& spec) {
  const char* field = InputField(request);
  const size_t prompt = spec.prompt.size();
  if (prompt == 0) return Invalid(field, "no tokens", "at least one token");
  if (limits.max_prompt_tokens > 0 && prompt > limits.max_prompt_tokens) {
    return Invalid(field, absl::StrCat(prompt, " tokens"),
                   absl::StrCat("at most ", limits.max_prompt_tokens, " (max-prompt-tokens)"));
  }
  struct Bound {
    uint32_t tokens;
    const char* what;
  };
  const Bound context{limits.max_context_tokens, "the model's context"};
  const Bound pool{limits.max_sequence_tokens, "the capacity of the workers' KV pages"};
  const Bound& bound = context.tokens <= pool.tokens ? context : pool;
  const std::string limit = absl::StrCat(bound.tokens, " (", bound.what, ")");
  if (prompt >= bound.tokens) {
    return Invalid(field, absl::StrCat(prompt, " tokens"), absl::StrCat("fewer than ", limit));
  }
  const uint32_t room = bound.tokens - static_cast<uint32_t>(prompt);
  const v1::SamplingParams& p = request.sampling();
  if (p.has_max_tokens() && p.max_tokens() > room) {
    return Invalid("sampling.max_tokens", p.max_tokens(),
                   absl::StrCat("at most ", room, ": with the prompt's ", prompt, " tokens the limit is ", limit));
  }
  if (p.min_tokens() > room) return Invalid("sampling.min_tokens", p.min_tokens(), absl::StrCat("at most ", room));
  spec.sampling.set_max_tokens(p.has_max_tokens() ? p.max_tokens() : room);
  return absl::OkStatus();
}

float DefaultTemperature(const GenerationConfig& config) {
  if (config.do_sample == false) return 0;
  return static_cast<float>(config.temperature.value_or(1));
}

// In a model's file, a top_p of 0 means no top_p.
float DefaultTopP(const GenerationConfig& config) {
  return config.top_p && *config.top_p > 0 ? std::max(static_cast<float>(*config.top_p), kMinTopP) : 1;
}

void ResolveSampling(const v1::SamplingParams& p, const ModelAssets& assets, uint64_t drawn_seed,
                     v1::EngineSampling& out) {
  const GenerationConfig& config = assets.generation;
  out.set_temperature(p.has_temperature() ? p.temperature() : DefaultTemperature(config));
  out.set_top_k(p.has_top_k() ? p.top_k() : config.top_k.value_or(0));
  out.set_top_p(p.has_top_p() ? p.top_p() : DefaultTopP(config));
  out.set_min_p(p.has_min_p() ? p.min_p() : static_cast<float>(config.min_p.value_or(0)));
  out.set_repetition_penalty(p.has_repetition_penalty() ? p.repetition_penalty()
                                                        : static_cast<float>(config.repetition_penalty.value_or(1)));
  out.set_presence_penalty(p.presence_penalty());
  out.set_frequency_penalty(p.frequency_penalty());
  *out.mutable_logit_bias() = p.logit_bias();
  out.set_seed(p.has_seed() ? p.seed() : drawn_seed);
  out.set_min_tokens(p.min_tokens());
  if (p.has_logprobs()) out.set_logprobs(p.logprobs());

  std::vector<TokenId> stops(p.stop_token_ids().begin(), p.stop_token_ids().end());
  if (!p.ignore_eos()) stops.insert(stops.end(), assets.end_tokens.begin(), assets.end_tokens.end());
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  out.mutable_stop_token_ids()->Assign(stops.begin(), stops.end());
}

}  // namespace

namespace {

constexpr double kMaxObjectiveSeconds = 3600;

absl::Status CheckObjective(const char* field, double seconds) {
  if (seconds >= 0 && seconds <= kMaxObjectiveSeconds) return absl::OkStatus();
  return Invalid(field, absl::StrCat(seconds), absl::StrCat("0 to ", kMaxObjectiveSeconds));
}

absl::Status CheckBytes(const char* field, const std::string& text, size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return Invalid(field, absl::StrCat(text.size(), " bytes"), absl::StrCat("at most ", limit));
}

// proto3 keeps numbers that no value of the enumeration has.
absl::Status CheckEnums(const v1::GenerateRequest& request) {
  if (!v1::Priority_IsValid(request.priority())) {
    return Invalid("priority", static_cast<int>(request.priority()), "PRIORITY_INTERACTIVE or PRIORITY_BATCH");
  }
  if (!v1::WhenLate_IsValid(request.when_late())) {
    return Invalid("when_late", static_cast<int>(request.when_late()), "WHEN_LATE_REFUSE or WHEN_LATE_SERVE");
  }
  return absl::OkStatus();
}

absl::Status CheckPin(const v1::Pin& pin) {
  const std::pair<const char*, const std::string&> ids[] = {{"pin.prefill_worker", pin.prefill_worker()},
                                                            {"pin.decode_worker", pin.decode_worker()},
                                                            {"pin.migrate_to", pin.migrate_to()}};
  for (const auto& [field, id] : ids) BATON_RETURN_IF_ERROR(CheckBytes(field, id, kMaxWorkerIdBytes));
  if (pin.decode_worker().empty()) return Invalid("pin.decode_worker", "empty", "the id of a decode worker");
  if (pin.migrate_to().empty()) {
    if (pin.migrate_after_tokens() == 0) return absl::OkStatus();
    return Invalid("pin.migrate_to", "empty", "the id of another decode worker, because migrate_after_tokens is set");
  }
  if (pin.migrate_to() == pin.decode_worker()) {
    return Invalid("pin.migrate_to", pin.migrate_to(), "another worker than pin.decode_worker");
  }
  if (pin.migrate_after_tokens() == 0) return Invalid("pin.migrate_after_tokens", 0, "at least 1");
  return absl::OkStatus();
}

// Needs max_tokens.
absl::Status ResolvePin(const v1::Pin& pin, RequestSpec& spec) {
  if (!pin.migrate_to().empty() && pin.migrate_after_tokens() >= spec.sampling.max_tokens()) {
    return Invalid("pin.migrate_after_tokens", pin.migrate_after_tokens(),
                   absl::StrCat("less than max_tokens (", spec.sampling.max_tokens(), ")"));
  }
  spec.pin = Pin{.prefill = pin.prefill_worker().empty() ? pin.decode_worker() : pin.prefill_worker(),
                 .decode = pin.decode_worker(),
                 .migrate_to = pin.migrate_to(),
                 .migrate_after_tokens = pin.migrate_after_tokens()};
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const v1::GenerateRequest& request) {
  BATON_RETURN_IF_ERROR(CheckUnsupported(request));
  BATON_RETURN_IF_ERROR(CheckInput(request));
  BATON_RETURN_IF_ERROR(CheckBytes("request_label", request.request_label(), kMaxLabelBytes));
  BATON_RETURN_IF_ERROR(CheckBytes("tenant", request.tenant(), kMaxTenantBytes));
  BATON_RETURN_IF_ERROR(CheckBytes("cache_salt", request.cache_salt(), kMaxSaltBytes));
  BATON_RETURN_IF_ERROR(CheckObjective("ttft_slo_seconds", request.ttft_slo_seconds()));
  BATON_RETURN_IF_ERROR(CheckObjective("tpot_slo_seconds", request.tpot_slo_seconds()));
  BATON_RETURN_IF_ERROR(CheckEnums(request));
  if (request.has_pin()) BATON_RETURN_IF_ERROR(CheckPin(request.pin()));
  BATON_RETURN_IF_ERROR(CheckNumbers(request.sampling()));
  BATON_RETURN_IF_ERROR(CheckStops(request.sampling()));
  return CheckCounts(request.sampling());
}

absl::StatusOr<RequestSpec> ResolveRequest(const v1::GenerateRequest& request, const ModelAssets& assets,
                                           const ModelLimits& limits, const RequestDefaults& defaults) {
  BATON_RETURN_IF_ERROR(CheckTokenIds(request, limits.vocab_size));
  RequestSpec spec;
  spec.assets_fingerprint = assets.fingerprint;
  BATON_ASSIGN_OR_RETURN(spec.prompt, PromptTokens(request, assets));
  BATON_RETURN_IF_ERROR(ResolveLength(request, limits, spec));
  ResolveSampling(request.sampling(), assets, defaults.seed, spec.sampling);
  if (request.has_pin()) BATON_RETURN_IF_ERROR(ResolvePin(request.pin(), spec));
  spec.cache_salt = request.cache_salt();
  spec.tenant = request.tenant();
  spec.is_batch = request.priority() == v1::PRIORITY_BATCH;
  if (!spec.is_batch) spec.objectives = defaults.objectives;
  spec.when_late = defaults.when_late;
  if (request.when_late() != v1::WHEN_LATE_UNSPECIFIED) {
    spec.when_late = request.when_late() == v1::WHEN_LATE_SERVE ? WhenLate::kServe : WhenLate::kRefuse;
  }
  if (request.has_ttft_slo_seconds()) spec.objectives.ttft = absl::Seconds(request.ttft_slo_seconds());
  if (request.has_tpot_slo_seconds()) spec.objectives.tpot = absl::Seconds(request.tpot_slo_seconds());
  spec.stop.assign(request.sampling().stop().begin(), request.sampling().stop().end());
  spec.skip_special_tokens = !request.sampling().has_skip_special_tokens() || request.sampling().skip_special_tokens();
  return spec;
}

}  // namespace baton::router
