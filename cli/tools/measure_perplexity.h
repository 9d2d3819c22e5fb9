// The perplexity of a model on a text: how well quantized weights or a smaller KV cache keep what the model knows.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model/model.h"
#include "engine/types.h"

namespace baton {

struct PerplexityOptions {
  std::filesystem::path model;
  ModelOptions engine;
  int chunk_tokens = 512;
};

struct Perplexity {
  double perplexity = 0;  // exp of the mean negative log likelihood
  int chunks = 0;
  int scored_tokens = 0;
  size_t weight_bytes = 0;
  size_t kv_bytes_per_token = 0;
  std::string numerics_id;
};

// The method of llama.cpp's tool, for comparisons: the text's tokens in consecutive chunks, each alone from position 0
// and its first token replaced by BOS if the tokenizer begins texts with it; of each chunk the predictions made at the
// second half of its positions count, but for the last; what does not fill a chunk is left out.
//
// INVALID_ARGUMENT when the text does not fill a chunk; CANCELLED when `interrupted` says so between chunks; the errors
// of loading the model.
absl::StatusOr<Perplexity> MeasurePerplexity(const PerplexityOptions& options, const std::string& text,
                                             const std::function<bool()>& interrupted);

}  // namespace baton
