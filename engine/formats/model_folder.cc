// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/model_folder.h"

#include <nlohmann/json.hpp>

#include "common/json.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/file.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_model.h"
#include "text/assets/generation_config.h"

namespace baton {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr size_t kMaxAssetBytes = size_t{64} << 20;
constexpr const char* kRequired = "tokenizer.json";
constexpr const char* kGenerationConfig = "generation_config.json";
constexpr const char* kOptional[] = {"tokenizer_config.json", kGenerationConfig, "chat_template.jinja",
                                     "additional_chat_templates/tool_use.jinja"};

// Copies eos_token_id from config.json to `generation`, the text of generation_config.json, unless that file has the
// field. Older models have the field only in config.json. `generation` is empty when there is no
// generation_config.json.
absl::Status AddEndTokens(const std::filesystem::path& model, std::string& generation) {
  nlohmann::json json = nlohmann::json::object();
  if (!generation.empty()) {
    BATON_ASSIGN_OR_RETURN(json, ParseJson(generation, (model / kGenerationConfig).string()));
    if (!json.is_object()) return absl::OkStatus();  // ParseGenerationConfig refuses the text later
    if (const auto it = json.find("eos_token_id"); it != json.end() && !it->is_null()) return absl::OkStatus();
  }
  const absl::StatusOr<ModelText> config_text = LoadConfigJson(model);
  if (absl::IsNotFound(config_text.status())) return absl::OkStatus();
  BATON_RETURN_IF_ERROR(config_text.status());
  BATON_ASSIGN_OR_RETURN(const nlohmann::json config, ParseJson(config_text->text, config_text->origin));
  const auto end = config.is_object() ? config.find("eos_token_id") : config.end();
  if (end == config.end() || end->is_null()) return absl::OkStatus();
  json["eos_token_id"] = *end;
  generation = json.dump();
  return ParseGenerationConfig(nlohmann::json{{"eos_token_id", *end}}.dump(), config_text->origin).status();
}

}  // namespace

absl::StatusOr<ModelText> LoadConfigJson(const std::filesystem::path& model) {
  if (IsGgufPath(model)) {
    BATON_ASSIGN_OR_RETURN(const GgufModel gguf, OpenGgufModel(model));
    BATON_ASSIGN_OR_RETURN(std::string text, GgufConfigJson(gguf));
    return ModelText{Concat(gguf.origin, ", as config.json"), std::move(text)};
  }
  const std::filesystem::path path = model / "config.json";
  BATON_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path, kMaxConfigBytes));
  return ModelText{path.string(), std::move(text)};
}

absl::StatusOr<std::map<std::string, std::string>> LoadTextAssets(const std::filesystem::path& model) {
  if (IsGgufPath(model)) {
    BATON_ASSIGN_OR_RETURN(const GgufModel gguf, OpenGgufModel(model));
    BATON_ASSIGN_OR_RETURN(auto assets, GgufTextAssets(gguf));
    for (const auto& [name, text] : assets) {
      if (text.size() > kMaxAssetBytes) {
        return absl::ResourceExhaustedError(
            Concat(gguf.origin, ": as ", name, ": expected at most ", kMaxAssetBytes, " bytes, got ", text.size()));
      }
    }
    return assets;
  }
  std::map<std::string, std::string> assets;
  BATON_ASSIGN_OR_RETURN(assets[kRequired], ReadTextFile(model / kRequired, kMaxAssetBytes));
  for (const char* name : kOptional) {
    absl::StatusOr<std::string> text = ReadTextFile(model / name, kMaxAssetBytes);
    if (absl::IsNotFound(text.status())) continue;
    BATON_RETURN_IF_ERROR(text.status());
    assets[name] = *std::move(text);
  }
  const auto it = assets.find(kGenerationConfig);
  std::string generation = it == assets.end() ? "" : it->second;
  BATON_RETURN_IF_ERROR(AddEndTokens(model, generation));
  if (!generation.empty()) assets[kGenerationConfig] = std::move(generation);
  return assets;
}

}  // namespace baton
