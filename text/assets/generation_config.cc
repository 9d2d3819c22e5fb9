// SPDX-License-Identifier: Apache-2.0
#include "text/assets/generation_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/json.h"
#include "common/status_macros.h"

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr int kMaxToken = std::numeric_limits<TokenId>::max();

bool IsToken(const Json& json) {
  return json.is_number_unsigned() && json.get<uint64_t>() <= static_cast<uint64_t>(kMaxToken);
}

// eos_token_id is one id or a list of them.
void ReadEosTokens(JsonFields& fields, std::vector<TokenId>& ids) {
  const Json* json = fields.Find("eos_token_id");
  if (json == nullptr) return;
  const Json list = json->is_array() ? *json : Json::array({*json});
  if (!std::all_of(list.begin(), list.end(), IsToken)) {
    return fields.Expected("eos_token_id", "a token id or a list of token ids");
  }
  for (const Json& id : list) ids.push_back(id.get<TokenId>());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// Sets `value` only when the file has the field.
template <typename T, typename Read>
void ReadOptional(const JsonFields& fields, std::string_view name, std::optional<T>& value, Read read) {
  if (fields.Find(name) == nullptr) return;
  T number{};
  read(number);
  value = number;
}

void ReadNumber(JsonFields& fields, std::string_view name, double min, double max, std::optional<double>& value) {
  ReadOptional(fields, name, value, [&](double& number) { fields.Number(name, min, max, number); });
}

void ReadInt(JsonFields& fields, std::string_view name, int min, int max, std::optional<int>& value) {
  ReadOptional(fields, name, value, [&](int& number) { fields.Int(name, min, max, number); });
}

}  // namespace

absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view json, std::string_view origin) {
  GenerationConfig config;
  if (json.empty()) return config;
  BATON_ASSIGN_OR_RETURN(const Json root, ParseJson(json, origin));
  JsonFields fields(root, origin);
  ReadEosTokens(fields, config.eos_token_ids);
  ReadInt(fields, "bos_token_id", 0, kMaxToken, config.bos_token_id);
  ReadOptional(fields, "do_sample", config.do_sample, [&](bool& value) { fields.Bool("do_sample", value); });
  ReadNumber(fields, "temperature", 0, 1e6, config.temperature);
  ReadInt(fields, "top_k", 0, kMaxToken, config.top_k);
  ReadNumber(fields, "top_p", 0, 1, config.top_p);
  ReadNumber(fields, "min_p", 0, 1, config.min_p);
  ReadNumber(fields, "repetition_penalty", 1e-6, 1e6, config.repetition_penalty);
  BATON_RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace baton
