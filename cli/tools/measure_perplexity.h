// SPDX-License-Identifier: Apache-2.0
// Measures the perplexity of a model on a text, to see what quantized weights or a smaller KV cache cost.
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

// Uses the method of llama.cpp's tool. The text's tokens are cut into chunks; a rest that fills no chunk is left out.
// Each chunk runs alone from position 0, its first token replaced by BOS if the tokenizer puts BOS before texts. The
// predictions at the second half of a chunk's positions count, except the last.
//
// INVALID_ARGUMENT when the text does not fill a chunk; CANCELLED when `interrupted` returns true between chunks. Other
// errors come from loading the model.
absl::StatusOr<Perplexity> MeasurePerplexity(const PerplexityOptions& options, const std::string& text,
                                             const std::function<bool()>& interrupted);

}  // namespace baton
