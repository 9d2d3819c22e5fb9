// SPDX-License-Identifier: Apache-2.0
// Loads a model's texts (tokenizer, chat template, sampling defaults) without its weights.
#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "text/assets/model_assets.h"

namespace baton {

// `model` is a folder or a GGUF file that workers take.
absl::StatusOr<std::shared_ptr<const ModelAssets>> LoadModelAssets(const std::filesystem::path& model);

}  // namespace baton
