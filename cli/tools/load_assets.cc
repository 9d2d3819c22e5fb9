// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/load_assets.h"

#include "common/status_macros.h"
#include "engine/formats/model_folder.h"

namespace baton {

absl::StatusOr<std::shared_ptr<const ModelAssets>> LoadModelAssets(const std::filesystem::path& model) {
  BATON_ASSIGN_OR_RETURN(const AssetFiles files, LoadTextAssets(model));
  return ModelAssets::Build(AssetsFingerprint(files), files);
}

}  // namespace baton
