// What the router needs of a model: tokenizer, chat template, sampling defaults. Workers deliver the files, by
// fingerprint.
//
// Immutable after Build, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/generation_config.h"
#include "engine/tokenizer/asset_files.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton::router {

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
