// The text files of a Hugging Face folder: what workers read and serve to the router.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

// File name to content: tokenizer.json (NOT_FOUND without it) and, as far as they are there, tokenizer_config.json,
// generation_config.json and chat_template.jinja. A file over 64 MiB is RESOURCE_EXHAUSTED. The texts are not looked
// at: whoever parses them refuses what is wrong.
absl::StatusOr<std::map<std::string, std::string>> LoadTextAssets(const std::filesystem::path& folder);

}  // namespace baton
