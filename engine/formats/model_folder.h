// The texts of a model: what workers read and serve to the router. A model is a Hugging Face folder or a GGUF file (of
// a split one the first part), which has the same texts in another form.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

struct ModelText {
  std::string origin;  // for errors
  std::string text;
};

// config.json: NOT_FOUND when there is none. Over 1 MiB is RESOURCE_EXHAUSTED.
absl::StatusOr<ModelText> LoadConfigJson(const std::filesystem::path& model);

// File name to content: tokenizer.json (NOT_FOUND without it) and, as far as they are there, tokenizer_config.json,
// generation_config.json, chat_template.jinja and additional_chat_templates/tool_use.jinja. A file over 64 MiB is
// RESOURCE_EXHAUSTED. The texts are not looked at: whoever parses them refuses what is wrong. What of a GGUF file's
// tokenizer is not supported is UNIMPLEMENTED.
absl::StatusOr<std::map<std::string, std::string>> LoadTextAssets(const std::filesystem::path& model);

}  // namespace baton
