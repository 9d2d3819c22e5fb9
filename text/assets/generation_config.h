// SPDX-License-Identifier: Apache-2.0
// The sampling defaults of a model, from generation_config.json.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace baton {

// A field that the file lacks is empty; then the server's default applies.
struct GenerationConfig {
  std::vector<TokenId> eos_token_ids;  // sorted, without duplicates
  std::optional<TokenId> bos_token_id;
  std::optional<bool> do_sample;  // false: greedy unless a request says otherwise
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

// Parses the text of generation_config.json. An empty text (no such file) gives an empty config. INVALID_ARGUMENT names
// `origin`, the field and what was expected.
absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view json, std::string_view origin);

}  // namespace baton
