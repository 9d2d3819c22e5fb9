// SPDX-License-Identifier: Apache-2.0
// Reads a model without its weights: its texts, its description, and the memory for serving the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model/config.h"
#include "engine/types.h"
#include "text/assets/model_assets.h"

namespace baton {

// Loads a model's texts: tokenizer, chat template, sampling defaults. `model` is a folder or a GGUF file that workers
// take.
absl::StatusOr<std::shared_ptr<const ModelAssets>> LoadModelAssets(const std::filesystem::path& model);

struct TypeReport {
  std::string type;       // in the format's spelling
  bool supported = true;  // whether the engine computes with this type
  int tensors = 0;
  uint64_t parameters = 0;
  uint64_t bytes = 0;  // in the file
  uint64_t memory_bytes =
      0;  // in a worker, where 5- and 6-bit codes take 8 bits each; 0 for types that are not supported
};

// A token at which an answer ends.
struct EndToken {
  TokenId id;
  std::string text;
};

struct ModelReport {
  std::string format;                 // "gguf" or "safetensors"
  std::optional<ModelConfig> config;  // unset when the architecture is not supported
  absl::Status config_status;         // why config is unset
  int tokenizer_tokens = 0;
  std::vector<EndToken> end_tokens;
  absl::Status tokenizer_status;      // why the tokenizer is not supported
  absl::Status chat_template_status;  // NOT_FOUND: there is no template; otherwise why the template is not supported
  std::vector<TypeReport> types;      // by bytes, the largest first
  TypeReport total;
};

// Describes a Hugging Face folder or a GGUF file. Fails when the tensors cannot be read.
absl::StatusOr<ModelReport> InspectModel(const std::filesystem::path& path);

// Returns the bytes of one token in the KV cache.
uint64_t KvBytesPerToken(const ModelConfig& config, KvType kv_dtype);

// Returns how many tokens the KV cache holds when `memory_bytes` are shared by the cache and a worker's weights. 0 when
// the weights alone do not fit.
uint64_t TokensThatFit(const ModelReport& report, KvType kv_dtype, uint64_t memory_bytes);

}  // namespace baton
