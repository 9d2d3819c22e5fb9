// SPDX-License-Identifier: Apache-2.0
// Writes a model with its matrices quantized.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/types.h"

namespace baton {

struct QuantizeOptions {
  TensorType type = TensorType::kQ8_0;  // or any type that EncodeBlocks knows, such as kQ4_0
  // Type of the matrix that gives the logits, which may be the embedding. Errors there cost more than elsewhere, so a
  // larger type may pay off. Unset: `type`.
  std::optional<TensorType> head_type = {};
  int threads = 1;
};

struct QuantizedModel {
  int matrices = 0;       // of the new types
  uint64_t bytes_in = 0;  // of all input tensors
  uint64_t bytes = 0;     // of the output file
};

// Quantizes a Hugging Face folder or a GGUF file into a GGUF file, in less than 100 MB of memory besides the mapped
// input. Vectors (norms) become F32. A GGUF file's metadata stay as they are. INVALID_ARGUMENT names a tensor whose
// rows are not whole blocks, or with a value that the type cannot hold. ALREADY_EXISTS when something is at `out`.
absl::StatusOr<QuantizedModel> QuantizeModel(const std::filesystem::path& in, const std::filesystem::path& out,
                                             const QuantizeOptions& options);

}  // namespace baton
