#include "router/model_assets.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton::router {
namespace {

constexpr char kTokenizer[] = "tokenizer.json";
constexpr char kTokenizerConfig[] = "tokenizer_config.json";
constexpr char kGenerationConfig[] = "generation_config.json";
constexpr char kChatTemplate[] = "chat_template.jinja";

// A special token in tokenizer_config.json: its text, or an object that has it as `content`.
std::string SpecialTokenText(const nlohmann::json& config, const char* field) {
  const auto it = config.find(field);
  if (it == config.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object()) {
    const auto content = it->find("content");
    if (content != it->end() && content->is_string()) return content->get<std::string>();
  }
  return "";
}

// chat_template in tokenizer_config.json: the template, or a list of named ones of which "default" counts.
std::string TemplateText(const nlohmann::json& config) {
  const auto it = config.find("chat_template");
  if (it == config.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  if (!it->is_array()) return "";
  for (const nlohmann::json& entry : *it) {
    if (!entry.is_object() || !entry.contains("name") || entry["name"] != "default") continue;
    const auto source = entry.find("template");
    if (source != entry.end() && source->is_string()) return source->get<std::string>();
  }
  return "";
}

absl::Status ReadTokenizerConfig(const AssetFiles& files, ModelAssets& assets, std::string& template_text) {
  template_text = FileOrEmpty(files, kChatTemplate);
  const std::string_view text = FileOrEmpty(files, kTokenizerConfig);
  if (text.empty()) return absl::OkStatus();
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(kTokenizerConfig, ": expected a JSON object"));
  }
  assets.bos_text = SpecialTokenText(config, "bos_token");
  assets.eos_text = SpecialTokenText(config, "eos_token");
  if (template_text.empty()) template_text = TemplateText(config);
  return absl::OkStatus();
}

void LoadChatTemplate(std::string_view text, ModelAssets& assets) {
  if (text.empty()) {
    assets.chat_status = absl::InvalidArgumentError("the model has no chat template");
    return;
  }
  absl::StatusOr<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::Parse(text);
  if (parsed.ok()) {
    assets.chat_template = *std::move(parsed);
  } else {
    assets.chat_status =
        absl::InvalidArgumentError(absl::StrCat("the model's chat template: ", parsed.status().message()));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ModelAssets>> ModelAssets::Build(const std::string& fingerprint,
                                                                      const AssetFiles& files) {
  if (const std::string actual = AssetsFingerprint(files); actual != fingerprint) {
    return absl::DataLossError(absl::StrCat("model assets: fingerprint ", fingerprint, " announced, ", actual,
                                            " received (", files.size(), " files)"));
  }
  auto assets = std::make_shared<ModelAssets>();
  assets->fingerprint = fingerprint;
  BATON_ASSIGN_OR_RETURN(assets->tokenizer,
                         Tokenizer::Create(FileOrEmpty(files, kTokenizer), FileOrEmpty(files, kTokenizerConfig)));
  BATON_ASSIGN_OR_RETURN(assets->generation,
                         ParseGenerationConfig(FileOrEmpty(files, kGenerationConfig), kGenerationConfig));
  std::string template_text;
  BATON_RETURN_IF_ERROR(ReadTokenizerConfig(files, *assets, template_text));
  LoadChatTemplate(template_text, *assets);
  assets->end_tokens = assets->generation.eos_token_ids;
  if (assets->end_tokens.empty() && !assets->eos_text.empty()) {
    if (const std::optional<TokenId> id = assets->tokenizer->IdOf(assets->eos_text)) assets->end_tokens.push_back(*id);
  }
  std::sort(assets->end_tokens.begin(), assets->end_tokens.end());
  return assets;
}

}  // namespace baton::router
