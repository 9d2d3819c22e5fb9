// A model in GGUF: one file, or the parts of a split one ("x-00001-of-00003.gguf").
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/file.h"
#include "engine/formats/gguf.h"

namespace baton {

// Immutable once open, so thread-safe.
struct GgufModel {
  std::string origin;             // the file, or the first of its parts: for errors
  std::vector<MappedFile> files;  // what metadata and tensors refer to
  GgufMetadata metadata;          // of the first part: it has all of it
  std::vector<Tensor> tensors;    // of all parts, by the names that GGUF files use
};

// Whether `path` names a GGUF file rather than a folder.
bool IsGgufPath(const std::filesystem::path& path);

// Of a split model `path` is the first part; the others lie beside it. INVALID_ARGUMENT names the file, the key or
// tensor and what was expected.
absl::StatusOr<GgufModel> OpenGgufModel(const std::filesystem::path& path);

}  // namespace baton
