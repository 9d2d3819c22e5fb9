// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/step_profile.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "common/json.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/file.h"
#include "engine/formats/output_file.h"

namespace baton {
namespace {

constexpr std::string_view kFormat = "baton step profile";
constexpr int kVersion = 1;
constexpr size_t kMaxBytes = 16 << 20;
constexpr size_t kMaxSteps = 10'000;
constexpr int64_t kMaxTokens = 1 << 28;
constexpr double kMaxSeconds = 3600;

// Returns the field, or an empty object with an error recorded.
const nlohmann::json& Object(JsonFields& fields, std::string_view name) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json* found = fields.Find(name);
  if (found != nullptr && found->is_object()) return *found;
  fields.Expected(name, "an object");
  return kEmpty;
}

absl::Status ParseCost(const nlohmann::json& json, std::string_view origin, StepCost& cost) {
  JsonFields fields(json, origin);
  fields.Required("step_seconds").Number("step_seconds", 0, kMaxSeconds, cost.step);
  fields.Required("prompt_token_seconds").Number("prompt_token_seconds", 0, kMaxSeconds, cost.prompt_token);
  fields.Required("decode_row_seconds").Number("decode_row_seconds", 0, kMaxSeconds, cost.decode_row);
  fields.Required("prompt_attended_token_seconds")
      .Number("prompt_attended_token_seconds", 0, kMaxSeconds, cost.prompt_attended);
  fields.Required("decode_attended_token_seconds")
      .Number("decode_attended_token_seconds", 0, kMaxSeconds, cost.decode_attended);
  if (!cost.known()) fields.Expected("step_seconds", "a time above 0, or a cost per token");
  return fields.status();
}

absl::StatusOr<StepProfile::Step> ParseStep(const nlohmann::json& json, std::string_view origin) {
  StepProfile::Step step;
  JsonFields fields(json, origin);
  fields.Required("prompt_tokens").Int("prompt_tokens", 0, kMaxTokens, step.prompt_tokens);
  fields.Required("decode_rows").Int("decode_rows", 0, kMaxTokens, step.decode_rows);
  fields.Required("context_tokens").Int("context_tokens", 0, kMaxTokens, step.context_tokens);
  fields.Required("seconds").Number("seconds", 1e-9, kMaxSeconds, step.seconds);
  if (step.prompt_tokens + step.decode_rows == 0) fields.Expected("prompt_tokens", "at least 1 without decode_rows");
  if (!fields.status().ok()) return fields.status();
  return step;
}

}  // namespace

StepWork StepProfile::Step::work() const {
  StepWork work;
  if (prompt_tokens > 0) work.AddPrompt(context_tokens, prompt_tokens);
  for (int row = 0; row < decode_rows; ++row) work.AddDecode(context_tokens);
  return work;
}

double RelativeError(const StepProfile& profile, const StepProfile::Step& step) {
  return profile.cost.Seconds(step.work()) / step.seconds - 1;
}

std::string ToJson(const StepProfile& profile) {
  nlohmann::ordered_json json = {{"format", std::string(kFormat)},
                                 {"version", kVersion},
                                 {"model",
                                  {{"name", profile.model},
                                   {"numerics_id", profile.numerics_id},
                                   {"threads", profile.threads},
                                   {"layers", profile.layers},
                                   {"page_tokens", profile.page_tokens},
                                   {"kv_token_bytes", profile.kv_token_bytes},
                                   {"max_context_tokens", profile.max_context_tokens}}},
                                 {"step_cost",
                                  {{"step_seconds", profile.cost.step},
                                   {"prompt_token_seconds", profile.cost.prompt_token},
                                   {"decode_row_seconds", profile.cost.decode_row},
                                   {"prompt_attended_token_seconds", profile.cost.prompt_attended},
                                   {"decode_attended_token_seconds", profile.cost.decode_attended}}},
                                 {"steps", nlohmann::ordered_json::array()}};
  for (const StepProfile::Step& step : profile.steps) {
    json["steps"].push_back({{"prompt_tokens", step.prompt_tokens},
                             {"decode_rows", step.decode_rows},
                             {"context_tokens", step.context_tokens},
                             {"seconds", step.seconds},
                             {"relative_error", RelativeError(profile, step)}});
  }
  return json.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<StepProfile> ParseStepProfile(std::string_view text, std::string_view origin) {
  BATON_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, origin));
  JsonFields fields(json, origin);
  std::string format;
  int version = 0;
  fields.Required("format").String("format", format);
  if (format != kFormat) fields.Expected("format", Concat("\"", kFormat, "\""));
  fields.Required("version").Int("version", kVersion, kVersion, version);
  const nlohmann::json& model = Object(fields, "model");
  const nlohmann::json& cost = Object(fields, "step_cost");
  const nlohmann::json* const steps = fields.Find("steps");
  if (steps == nullptr || !steps->is_array() || steps->size() > kMaxSteps) {
    fields.Expected("steps", Concat("an array of at most ", kMaxSteps, " steps"));
  }
  BATON_RETURN_IF_ERROR(fields.status());

  StepProfile profile;
  JsonFields shape(model, Concat(origin, ": model"));
  shape.Required("name").String("name", profile.model);
  shape.Required("numerics_id").String("numerics_id", profile.numerics_id);
  shape.Required("threads").Int("threads", 1, 1 << 20, profile.threads);
  shape.Required("layers").Int("layers", 1, 1 << 20, profile.layers);
  shape.Required("page_tokens").Int("page_tokens", 1, 1 << 20, profile.page_tokens);
  shape.Required("kv_token_bytes").Int("kv_token_bytes", 1, 1 << 30, profile.kv_token_bytes);
  shape.Required("max_context_tokens").Int("max_context_tokens", 1, kMaxTokens, profile.max_context_tokens);
  BATON_RETURN_IF_ERROR(shape.status());
  BATON_RETURN_IF_ERROR(ParseCost(cost, Concat(origin, ": step_cost"), profile.cost));
  for (const nlohmann::json& step : *steps) {
    const std::string place = Concat(origin, ": steps[", profile.steps.size(), "]");
    BATON_ASSIGN_OR_RETURN(profile.steps.emplace_back(), ParseStep(step, place));
  }
  return profile;
}

absl::Status WriteStepProfile(const StepProfile& profile, const std::filesystem::path& path) {
  BATON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  BATON_RETURN_IF_ERROR(file.Write(ToJson(profile)));
  return file.Finish();
}

absl::StatusOr<StepProfile> ReadStepProfile(const std::filesystem::path& path) {
  BATON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxBytes));
  return ParseStepProfile(text, path.string());
}

}  // namespace baton
