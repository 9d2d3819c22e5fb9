// SPDX-License-Identifier: Apache-2.0
// Makes models of random weights with a usable tokenizer, for benchmarks and tests where only the shape matters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/formats/rope_factors.h"
#include "engine/types.h"

namespace baton {

// The shape of a model of the Llama family.
struct ModelPreset {
  std::string_view name;
  int hidden_size;
  int layers;
  int heads;
  int kv_heads;
  int head_dim;
  int ffn_size;
  int vocab_size;
  int max_positions;
  bool tied_embeddings;
  double rope_theta;
  std::optional<Llama3Scaling> rope_scaling;
};

// Known shapes.
std::span<const ModelPreset> ModelPresets();
// Returns null when no preset has that name.
const ModelPreset* FindModelPreset(std::string_view name);

enum class ModelFormat : uint8_t { kSafetensors, kGguf };

struct MakeModelOptions {
  ModelPreset preset = {};
  // Type of the matrices. Norms are F32 in GGUF, as in all GGUF files. Safetensors has no quantized types.
  TensorType type = TensorType::kBF16;
  ModelFormat format = ModelFormat::kGguf;
  uint64_t seed = 1;
  int threads = 1;
};

struct MadeModel {
  uint64_t parameters = 0;
  uint64_t bytes = 0;  // in all files
};

// Writes a Hugging Face folder or a GGUF file at `path`, in less than 100 MB of memory. The weights are a function of
// preset and seed, rounded to `type`: neither the format nor the number of threads changes them. ALREADY_EXISTS when
// something is at `path`.
absl::StatusOr<MadeModel> MakeModel(const MakeModelOptions& options, const std::filesystem::path& path);

}  // namespace baton
