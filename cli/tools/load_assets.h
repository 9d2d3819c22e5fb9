// A model's texts - tokenizer, chat template, sampling defaults - without its weights.
#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "text/assets/model_assets.h"

namespace baton {

// Of a model's folder or GGUF file, as the workers take it.
absl::StatusOr<std::shared_ptr<const ModelAssets>> LoadModelAssets(const std::filesystem::path& model);

}  // namespace baton
