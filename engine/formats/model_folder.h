// SPDX-License-Identifier: Apache-2.0
// Loads the text files of a model, which workers also serve to the router. `model` is a Hugging Face folder or a GGUF
// file. For a split GGUF model `model` is the first part.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

struct ModelText {
  std::string origin;  // path, for error messages
  std::string text;
};

// Loads config.json. NOT_FOUND when the folder has none. RESOURCE_EXHAUSTED above 1 MiB.
absl::StatusOr<ModelText> LoadConfigJson(const std::filesystem::path& model);

// Returns file name -> content for tokenizer.json and for each of these that exists: tokenizer_config.json,
// generation_config.json, chat_template.jinja and additional_chat_templates/tool_use.jinja.
//
// NOT_FOUND without tokenizer.json. RESOURCE_EXHAUSTED when a file has more than 64 MiB. UNIMPLEMENTED when the
// tokenizer of a GGUF file is not supported. Parsers of the texts check the content; LoadTextAssets does not.
absl::StatusOr<std::map<std::string, std::string>> LoadTextAssets(const std::filesystem::path& model);

}  // namespace baton
