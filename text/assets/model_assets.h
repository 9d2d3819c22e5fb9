// SPDX-License-Identifier: Apache-2.0
// A model's tokenizer, chat templates and sampling defaults, built from its asset files. Routers get these files from
// workers, tools read them from the model.
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

  // DATA_LOSS when the fingerprint of `files` is not `fingerprint`. Other errors come from the parsers of the files. An
  // absent or unsupported chat template is no error; then RenderChat fails.
  static absl::StatusOr<std::shared_ptr<const ModelAssets>> Build(const std::string& fingerprint,
                                                                  const AssetFiles& files);

  // Returns the prompt for a conversation; see PromptTemplates::Render for errors. Encode the prompt without adding
  // special tokens: the template has already added them.
  absl::StatusOr<std::string> RenderChat(const Conversation& conversation, std::string_view origin) const;
};

}  // namespace baton
