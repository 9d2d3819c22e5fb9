#include "engine/formats/model_folder.h"

#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/file.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_model.h"

namespace baton {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr size_t kMaxAssetBytes = size_t{64} << 20;
constexpr const char* kRequired = "tokenizer.json";
constexpr const char* kOptional[] = {"tokenizer_config.json", "generation_config.json", "chat_template.jinja"};

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
        return absl::ResourceExhaustedError(Concat(gguf.origin, ": as ", name, " its tokenizer takes ", text.size(),
                                                   " bytes, the limit is ", kMaxAssetBytes));
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
  return assets;
}

}  // namespace baton
