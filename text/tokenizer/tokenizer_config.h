// SPDX-License-Identifier: Apache-2.0
// The fields of tokenizer_config.json that matter here: special tokens by role, and chat templates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/template_value.h"

namespace baton {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  // Further special tokens by template variable: pad_token, additional_special_tokens (a list), ...
  TemplateValue::Dict more_special_tokens;
  // If absent, tokenizer.json's post_processor decides.
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<std::string> chat_template;  // the only template, or the template named "default"
  std::optional<std::string> tool_template;  // the template named "tool_use"
};

// Parses the text of tokenizer_config.json. An empty text (no such file) gives an empty config. INVALID_ARGUMENT names
// the field and what was expected.
absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json);

}  // namespace baton
