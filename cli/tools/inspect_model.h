// What is in a model, and what serving it takes, without loading it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model/config.h"
#include "engine/types.h"

namespace baton {

struct TypeReport {
  std::string type;       // as the format spells it
  bool supported = true;  // the engine computes with it
  int tensors = 0;
  uint64_t parameters = 0;
  uint64_t bytes = 0;         // in the file
  uint64_t memory_bytes = 0;  // in a worker, where 5- and 6-bit codes take 8 bits each; of supported types
};

// A token at which an answer ends.
struct EndToken {
  TokenId id;
  std::string text;
};

struct ModelReport {
  std::string format;                 // "gguf" or "safetensors"
  std::optional<ModelConfig> config;  // none when it is not supported
  absl::Status config_status;         // ... and why
  int tokenizer_tokens = 0;
  std::vector<EndToken> end_tokens;
  absl::Status tokenizer_status;      // why the tokenizer is not supported
  absl::Status chat_template_status;  // NOT_FOUND when there is none; else why it is not supported
  std::vector<TypeReport> types;      // the one of the most bytes first
  TypeReport total;
};

// A Hugging Face folder or a GGUF file. Fails when the tensors cannot be read.
absl::StatusOr<ModelReport> InspectModel(const std::filesystem::path& path);

// Of one token in the KV cache.
uint64_t KvBytesPerToken(const ModelConfig& config, KvType kv_dtype);

// How many tokens the KV cache holds when `memory_bytes` hold it and the weights, as a worker has them, and nothing
// else. 0 when the weights alone do not fit.
uint64_t TokensThatFit(const ModelReport& report, KvType kv_dtype, uint64_t memory_bytes);

}  // namespace baton
