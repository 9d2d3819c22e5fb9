// SPDX-License-Identifier: Apache-2.0
// Opens a GGUF model: one file, or the parts of a split model ("x-00001-of-00003.gguf").
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/file.h"
#include "engine/formats/gguf.h"

namespace baton {

// Owns the mappings that `metadata` and `tensors` point into. Not modified after OpenGgufModel, so thread-safe.
struct GgufModel {
  std::string origin;  // path of the first part, for error messages
  std::vector<MappedFile> files;
  GgufMetadata metadata;        // of the first part, which has the metadata of the whole model
  std::vector<Tensor> tensors;  // of all parts, under their GGUF names
};

// Returns whether `path` names a GGUF file rather than a folder.
bool IsGgufPath(const std::filesystem::path& path);

// Opens the model whose first part is `path`. Further parts must lie in the same folder. INVALID_ARGUMENT names the
// file, the key or tensor, and what was expected.
absl::StatusOr<GgufModel> OpenGgufModel(const std::filesystem::path& path);

}  // namespace baton
