// What tokenizer_config.json says beside the tokenizer itself: special tokens by role and the chat template.
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
  // The others by the names that templates know them by: pad_token, additional_special_tokens (a list), ...
  TemplateValue::Dict more_special_tokens;
  // Absent: as tokenizer.json's post_processor says.
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  // The only template, or the one named "default"; and for conversations with tools the one named "tool_use".
  std::optional<std::string> chat_template;
  std::optional<std::string> tool_template;
};

// From the text of the file; all absent when it is empty. INVALID_ARGUMENT names a field that is not what was expected.
absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json);

}  // namespace baton
