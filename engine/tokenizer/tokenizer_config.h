// What tokenizer_config.json says beside the tokenizer itself: special tokens by role and the chat template.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  // Absent: as tokenizer.json's post_processor says.
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  // The only template, or the one named "default".
  std::optional<std::string> chat_template;
};

// From the text of the file; all absent when it is empty. INVALID_ARGUMENT names a field that is not what was expected.
absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json);

}  // namespace baton
