// What the router needs of a model: tokenizer, chat template, sampling defaults. Workers deliver the files, by
// fingerprint.
//
// Immutable after Build, so thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/generation_config.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton::router {

// File name to content: tokenizer.json, and if the model has them tokenizer_config.json, generation_config.json and
// chat_template.jinja. Others count for the fingerprint only.
using AssetFiles = std::map<std::string, std::string>;

// SHA-256 (hex) over, for each file in the order of names: name, NUL, size as 8 bytes big-endian, content.
std::string AssetsFingerprint(const AssetFiles& files);

struct ModelAssets {
  std::string fingerprint;
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const ChatTemplate> chat_template;  // null: chat_status says why
  absl::Status chat_status;
  GenerationConfig generation;
  std::vector<TokenId> end_tokens;  // sorted
  std::string bos_text;
  std::string eos_text;

  // DATA_LOSS when the files do not have that fingerprint; else what the parsers of the files say. A chat template that
  // is absent or not supported only disables chat.
  static absl::StatusOr<std::shared_ptr<const ModelAssets>> Build(const std::string& fingerprint,
                                                                  const AssetFiles& files);
};

}  // namespace baton::router
