// SPDX-License-Identifier: Apache-2.0
// A Checkpoint holds all tensors of a model, from a Hugging Face folder or a GGUF file. Tensors have their Hugging Face
// names in both cases. The Checkpoint owns the file mappings that its tensors point into.
//
// Immutable after Open, so thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/file.h"
#include "engine/formats/safetensors.h"

namespace baton {

class Checkpoint {
 public:
  // `model` is a folder with model.safetensors or model.safetensors.index.json, or a GGUF file. For a split GGUF model
  // `model` is the first part. NOT_FOUND when the file does not exist. INVALID_ARGUMENT names the file, the tensor and
  // what was expected.
  static absl::StatusOr<Checkpoint> Open(const std::filesystem::path& model);

  // Returns null when the model has no such tensor.
  const Tensor* Find(std::string_view name) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }  // sorted by name
  const std::string& origin() const { return origin_; }            // path of the file or index, for error messages
  uint64_t bytes() const;                                          // sum over all tensors

  // Returns the resident memory of the tensors to the system. The next read loads from the file again.
  void ReleasePages() const;

 private:
  Checkpoint() = default;
  static absl::StatusOr<Checkpoint> OpenFolder(const std::filesystem::path& folder);
  static absl::StatusOr<Checkpoint> OpenGguf(const std::filesystem::path& path);
  absl::Status AddFile(const std::filesystem::path& path);
  absl::Status SortTensors();  // INVALID_ARGUMENT when two tensors have the same name

  std::string origin_;
  std::vector<MappedFile> files_;
  std::vector<Tensor> tensors_;
};

// Returns a hash (16 hex digits) of `config` and of each tensor's name, type, shape, row order and content. The split
// into files does not matter.
//
// Above 64 MiB in total, hashes only 4 KiB blocks at even distances, and the last block of each tensor. This avoids
// reading a large model in full. A change outside these blocks goes unnoticed.
std::string ModelFingerprint(std::string_view config, const std::vector<Tensor>& tensors);

}  // namespace baton
