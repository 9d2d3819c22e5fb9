// SPDX-License-Identifier: Apache-2.0
// Parses safetensors files (https://github.com/huggingface/safetensors).
//
// Layout, little-endian: header length (uint64) | JSON header | tensor data, row-major and without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/types.h"

namespace baton {

// A tensor of a mapped file. Does not own `data`.
struct Tensor {
  std::string name;
  std::string type_name;            // the format's spelling: "BF16", "I64", "Q8_0"
  std::optional<TensorType> type;   // empty when the engine does not support the type
  std::vector<int64_t> shape;       // empty for a scalar
  std::span<const std::byte> data;  // may have any alignment
  int interleaved_heads = 0;        // see TensorView in engine/kernels/backend.h
  std::string name_in_file = {};    // GGUF only: the tensor's name before GgufTensors renamed it
};

// Returns "[2, 3]", for errors.
std::string ShapeText(const std::vector<int64_t>& shape);

// Returns the tensors of one file, sorted by name. Checks dtypes, that shape x dtype = bytes, and that the data of all
// tensors fills the file without gap or overlap. INVALID_ARGUMENT names `origin`, the tensor and what was expected. The
// result points into `file`.
absl::StatusOr<std::vector<Tensor>> ParseSafetensors(std::span<const std::byte> file, std::string_view origin);

// Parses model.safetensors.index.json of a sharded model. Returns tensor name -> file name in the same folder.
absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(std::string_view json,
                                                                         std::string_view origin);

}  // namespace baton
