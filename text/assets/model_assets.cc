// SPDX-License-Identifier: Apache-2.0
#include "text/assets/model_assets.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

constexpr char kTokenizer[] = "tokenizer.json";
constexpr char kTokenizerConfig[] = "tokenizer_config.json";
constexpr char kGenerationConfig[] = "generation_config.json";
constexpr char kChatTemplate[] = "chat_template.jinja";
constexpr char kToolTemplate[] = "additional_chat_templates/tool_use.jinja";

// As in Hugging Face's transformers, template files override the templates of tokenizer_config.json.
PromptTemplates LoadTemplates(const AssetFiles& files, const TokenizerConfig& config) {
  const std::string_view chat = FileOrEmpty(files, kChatTemplate);
  const std::string_view tool_use = FileOrEmpty(files, kToolTemplate);
  if (!chat.empty() || !tool_use.empty()) {
    return PromptTemplates(chat.empty() ? config.chat_template.value_or("") : std::string(chat), tool_use);
  }
  return PromptTemplates(config.chat_template.value_or(""), config.tool_template.value_or(""));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ModelAssets>> ModelAssets::Build(const std::string& fingerprint,
                                                                      const AssetFiles& files) {
  if (const std::string actual = AssetsFingerprint(files); actual != fingerprint) {
    return absl::DataLossError(
        Concat("model assets (", files.size(), " files): expected fingerprint ", fingerprint, ", got ", actual));
  }
  auto assets = std::make_shared<ModelAssets>();
  assets->fingerprint = fingerprint;
  BATON_ASSIGN_OR_RETURN(assets->tokenizer,
                         Tokenizer::Create(FileOrEmpty(files, kTokenizer), FileOrEmpty(files, kTokenizerConfig)));
  BATON_ASSIGN_OR_RETURN(assets->generation,
                         ParseGenerationConfig(FileOrEmpty(files, kGenerationConfig), kGenerationConfig));
  BATON_ASSIGN_OR_RETURN(TokenizerConfig config, ParseTokenizerConfig(FileOrEmpty(files, kTokenizerConfig)));
  const std::string eos = config.eos_token.value_or("");
  assets->special_tokens = {config.bos_token.value_or(""), eos, std::move(config.more_special_tokens)};
  assets->templates = LoadTemplates(files, config);
  assets->end_tokens = assets->generation.eos_token_ids;
  if (assets->end_tokens.empty() && !eos.empty()) {
    if (const std::optional<TokenId> id = assets->tokenizer->IdOf(eos)) assets->end_tokens.push_back(*id);
  }
  std::sort(assets->end_tokens.begin(), assets->end_tokens.end());
  return assets;
}

absl::StatusOr<std::string> ModelAssets::RenderChat(const Conversation& conversation, std::string_view origin) const {
  return templates.Render(conversation, special_tokens, origin);
}

}  // namespace baton
