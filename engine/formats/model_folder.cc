#include "engine/formats/model_folder.h"

#include "common/status_macros.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr size_t kMaxAssetBytes = size_t{64} << 20;
constexpr const char* kRequired = "tokenizer.json";
constexpr const char* kOptional[] = {"tokenizer_config.json", "generation_config.json", "chat_template.jinja"};

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> LoadTextAssets(const std::filesystem::path& folder) {
  std::map<std::string, std::string> assets;
  BATON_ASSIGN_OR_RETURN(assets[kRequired], ReadTextFile(folder / kRequired, kMaxAssetBytes));
  for (const char* name : kOptional) {
    absl::StatusOr<std::string> text = ReadTextFile(folder / name, kMaxAssetBytes);
    if (absl::IsNotFound(text.status())) continue;
    BATON_RETURN_IF_ERROR(text.status());
    assets[name] = *std::move(text);
  }
  return assets;
}

}  // namespace baton
