// What turns a request into tokens and tokens into an answer: a model's tokenizer, chat template and sampling defaults.
// Workers deliver the files to the router, by fingerprint; tools read them from the model.
//
// Immutable after Build, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/assets/asset_files.h"
#include "text/assets/generation_config.h"
#include "text/chat/conversation.h"
#include "text/chat/prompt_templates.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {

struct ModelAssets {
  std::string fingerprint;
  std::unique_ptr<const Tokenizer> tokenizer;
  PromptTemplates templates;
  GenerationConfig generation;
  std::vector<TokenId> end_tokens;  // sorted
  SpecialTokens special_tokens;

  // DATA_LOSS when the files do not have that fingerprint; else what the parsers of the files say. A chat template that
  // is absent or not supported only disables chat.
  static absl::StatusOr<std::shared_ptr<const ModelAssets>> Build(const std::string& fingerprint,
                                                                  const AssetFiles& files);

  // The prompt of a conversation, as PromptTemplates::Render says; it is to be tokenized without special tokens, which
  // it has itself.
  absl::StatusOr<std::string> RenderChat(const Conversation& conversation, std::string_view origin) const;
};

}  // namespace baton
