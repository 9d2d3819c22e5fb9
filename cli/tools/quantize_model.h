// Writes a model with its matrices quantized.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/types.h"

namespace baton {

struct QuantizeOptions {
  TensorType type = TensorType::kQ8_0;  // or kQ4_0; any type that EncodeBlocks knows
  // Of the matrix that logits come from, the embedding where that is it: what small errors in it cost is more than what
  // it weighs. Default: `type`.
  std::optional<TensorType> head_type = {};
  int threads = 1;
};

struct QuantizedModel {
  int matrices = 0;       // in the new types
  uint64_t bytes_in = 0;  // of all tensors
  uint64_t bytes = 0;     // of the file
};

// From a Hugging Face folder or a GGUF file to a GGUF file. Vectors (norms) become F32. A GGUF file's metadata stay as
// they are. INVALID_ARGUMENT names a tensor whose rows are not whole blocks, or which has a value that the type cannot
// hold; ALREADY_EXISTS when something is at `out`. Streams: memory stays below 100 MB beside the mapped input.
absl::StatusOr<QuantizedModel> QuantizeModel(const std::filesystem::path& in, const std::filesystem::path& out,
                                             const QuantizeOptions& options);

}  // namespace baton
