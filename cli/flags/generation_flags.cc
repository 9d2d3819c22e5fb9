// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/generation_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/flags/flags.h"
#include "common/status_macros.h"
#include "text/utf8.h"

namespace baton {
namespace {

// Parses a text such as "17=-2.5".
absl::StatusOr<std::pair<int32_t, float>> ParseLogitBias(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  int32_t id = 0;
  float bias = 0;
  if (!absl::SimpleAtoi(parts.first, &id) || !absl::SimpleAtof(parts.second, &bias)) {
    return absl::InvalidArgumentError(absl::StrCat("--logit-bias: \"", text, "\", expected TOKEN_ID=BIAS"));
  }
  return std::pair(id, bias);
}

// Adds --name and --no-name. When neither is given, `value` stays unset; CLI11's own flags would set it to false.
CLI::Option* AddSwitch(CLI::App& app, const std::string& name, std::optional<bool>* value, const std::string& help) {
  return app.add_flag_function(
      absl::StrCat("--", name, ",!--no-", name), [value](int64_t count) { *value = count > 0; }, help);
}

}  // namespace

absl::Status CheckUtf8(const char* flag, const std::string& text) {
  if (ValidUtf8Prefix(text) == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": not valid UTF-8"));
}

absl::StatusOr<absl::Duration> ParseTimeout(const char* flag, const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": \"", text, "\", expected a duration such as 250ms or 30s"));
  }
  return duration;
}

void GenerationFlags::AddTo(CLI::App& app) {
  app.add_option("--model", model_, "model name, as `baton status` shows it (default: the only model served)");
  app.add_option("--label", label_, "text that the router's and workers' logs repeat");
  app.add_option("--cache-salt", cache_salt_, "share cached prefixes with requests of the same salt only");
  app.add_option("--tenant", tenant_, "tenants that wait get the same share of the workers' prompt tokens");
  app.add_option("--timeout", timeout_, "give up after this long, e.g. 30s (default: never)");
  app.add_option("--ttft-slo", ttft_slo_, "objective for the time to first token, e.g. 500ms (default: the router's)");
  app.add_option("--tpot-slo", tpot_slo_,
                 "objective for the time per further token, e.g. 40ms (default: the router's)");
  AddChoice<v1::Priority>(app, "--priority", &priority_,
                          "batch: wait while interactive requests need the workers (default: interactive)",
                          {{"interactive", v1::PRIORITY_INTERACTIVE}, {"batch", v1::PRIORITY_BATCH}});
  AddChoice<v1::WhenLate>(app, "--when-late", &when_late_,
                          "if an objective would be missed because of the load: refuse, or serve with priority batch "
                          "(default: the router's)",
                          {{"refuse", v1::WHEN_LATE_REFUSE}, {"serve", v1::WHEN_LATE_SERVE}});
  const std::string before = app.option_defaults()->get_group();
  app.option_defaults()->group("Sampling (default: the model's generation_config)");
  AddNumber(app, "--temperature", &temperature_, ">= 0; 0 is greedy");
  AddWholeNumber(app, "--top-k", &top_k_, ">= 0; 0 keeps all", 0, INT32_MAX);
  AddNumber(app, "--top-p", &top_p_, "in (0, 1]");
  AddNumber(app, "--min-p", &min_p_, "in [0, 1]");
  AddNumber(app, "--repetition-penalty", &repetition_penalty_, "> 0; over prompt and output");
  AddNumber(app, "--presence-penalty", &presence_penalty_, "in [-2, 2]; over the output");
  AddNumber(app, "--frequency-penalty", &frequency_penalty_, "in [-2, 2]; over the output");
  app.add_option("--logit-bias", logit_bias_, "TOKEN_ID=BIAS, comma-separated or repeated")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddWholeNumber(app, "--seed", &seed_, "the same seed gives the same answer", 0, UINT64_MAX);
  AddWholeNumber(app, "--max-tokens", &max_tokens_, "end the answer after this many tokens", 0, UINT32_MAX);
  AddWholeNumber(app, "--min-tokens", &min_tokens_, "do not end the answer before this many tokens", 0, UINT32_MAX);
  app.add_option("--stop", stop_, "end the answer before this text; may be repeated")->allow_extra_args(false);
  AddTokenIds(app, "--stop-token-ids", &stop_token_ids_, "end the answer after one of these tokens; comma-separated");
  AddSwitch(app, "ignore-eos", &ignore_eos_, "go on after the model's end tokens");
  AddSwitch(app, "skip-special-tokens", &skip_special_tokens_, "leave special tokens out of the text (the default)");
  AddWholeNumber(app, "--logprobs", &logprobs_, "report the logprobs of each token and of this many most likely tokens",
                 0, UINT32_MAX);
  app.option_defaults()->group(before);
}

absl::Status GenerationFlags::Fill(v1::GenerateRequest& request) const {
  BATON_RETURN_IF_ERROR(CheckUtf8("--model", model_));
  BATON_RETURN_IF_ERROR(CheckUtf8("--label", label_));
  BATON_RETURN_IF_ERROR(CheckUtf8("--cache-salt", cache_salt_));
  BATON_RETURN_IF_ERROR(CheckUtf8("--tenant", tenant_));
  request.set_model(model_);
  request.set_request_label(label_);
  if (!cache_salt_.empty()) request.set_cache_salt(cache_salt_);
  if (!tenant_.empty()) request.set_tenant(tenant_);
  if (!ttft_slo_.empty()) {
    BATON_ASSIGN_OR_RETURN(const absl::Duration objective, ParseTimeout("--ttft-slo", ttft_slo_));
    request.set_ttft_slo_seconds(absl::ToDoubleSeconds(objective));
  }
  if (!tpot_slo_.empty()) {
    BATON_ASSIGN_OR_RETURN(const absl::Duration objective, ParseTimeout("--tpot-slo", tpot_slo_));
    request.set_tpot_slo_seconds(absl::ToDoubleSeconds(objective));
  }
  if (priority_) request.set_priority(*priority_);
  if (when_late_) request.set_when_late(*when_late_);
  v1::SamplingParams& sampling = *request.mutable_sampling();
  if (temperature_) sampling.set_temperature(*temperature_);
  if (top_k_) sampling.set_top_k(*top_k_);
  if (top_p_) sampling.set_top_p(*top_p_);
  if (min_p_) sampling.set_min_p(*min_p_);
  if (repetition_penalty_) sampling.set_repetition_penalty(*repetition_penalty_);
  if (presence_penalty_) sampling.set_presence_penalty(*presence_penalty_);
  if (frequency_penalty_) sampling.set_frequency_penalty(*frequency_penalty_);
  for (const std::string& text : logit_bias_) {
    BATON_ASSIGN_OR_RETURN(const auto bias, ParseLogitBias(text));
    (*sampling.mutable_logit_bias())[bias.first] = bias.second;
  }
  if (seed_) sampling.set_seed(*seed_);
  if (max_tokens_) sampling.set_max_tokens(*max_tokens_);
  if (min_tokens_) sampling.set_min_tokens(*min_tokens_);
  for (const std::string& stop : stop_) {
    BATON_RETURN_IF_ERROR(CheckUtf8("--stop", stop));
    sampling.add_stop(stop);
  }
  for (const int32_t id : stop_token_ids_) sampling.add_stop_token_ids(id);
  if (ignore_eos_) sampling.set_ignore_eos(*ignore_eos_);
  if (skip_special_tokens_) sampling.set_skip_special_tokens(*skip_special_tokens_);
  if (logprobs_) sampling.set_logprobs(*logprobs_);
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> GenerationFlags::timeout() const {
  if (timeout_.empty()) return absl::InfiniteDuration();
  return ParseTimeout("--timeout", timeout_);
}

}  // namespace baton
