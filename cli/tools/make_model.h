// Makes models of random weights, with a usable tokenizer: for benchmarks and tests, where only the shape matters.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"
#include "cli/tools/presets.h"
#include "engine/types.h"

namespace baton {

enum class ModelFormat : uint8_t { kSafetensors, kGguf };

struct MakeModelOptions {
  ModelPreset preset = {};
  // Of the matrices. In GGUF norms are F32, as they are in all such files. Safetensors has no quantized types.
  TensorType type = TensorType::kBF16;
  ModelFormat format = ModelFormat::kGguf;
  uint64_t seed = 1;
  int threads = 1;
};

struct MadeModel {
  uint64_t parameters = 0;
  uint64_t bytes = 0;  // of all files
};

// Writes a Hugging Face folder or a GGUF file at `path`, streaming: memory stays below 100 MB. The same options but for
// the format make the same model, up to the rounding of `type`. ALREADY_EXISTS when something is at `path`.
absl::StatusOr<MadeModel> MakeModel(const MakeModelOptions& options, const std::filesystem::path& path);

}  // namespace baton
