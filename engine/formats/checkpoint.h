// A Checkpoint is all the tensors of a model: those of a Hugging Face folder's model.safetensors, or the files that
// model.safetensors.index.json lists; or those of a GGUF file, by the names that the folder would have. It owns the
// mappings that its tensors refer to.
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
  // `model` is the folder or the GGUF file (of a split one the first part). NOT_FOUND when there is none;
  // INVALID_ARGUMENT names the file, the tensor and what was expected.
  static absl::StatusOr<Checkpoint> Open(const std::filesystem::path& model);

  // By name; null when there is none.
  const Tensor* Find(std::string_view name) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }  // sorted by name
  const std::string& origin() const { return origin_; }            // the file, or the index: for errors
  uint64_t bytes() const;                                          // of all tensors

  // Gives the memory behind the tensors, or one of them, back to the system until somebody reads them again.
  void ReleasePages() const;
  static void ReleasePages(const Tensor& tensor);

 private:
  Checkpoint() = default;
  static absl::StatusOr<Checkpoint> OpenFolder(const std::filesystem::path& folder);
  static absl::StatusOr<Checkpoint> OpenGguf(const std::filesystem::path& path);
  absl::Status AddFile(const std::filesystem::path& path);
  absl::Status SortTensors();  // refuses a name that is there twice

  std::string origin_;
  std::vector<MappedFile> files_;
  std::vector<Tensor> tensors_;
};

// 16 hex digits over `config` and every tensor's name, type, shape, order of rows and content, however they are spread
// over files. Of more than 64 MiB in all, content is sampled: 4 KiB blocks at even distances, the first and last of
// each tensor among them, so that a large model costs no full read; a change that misses every sample goes unnoticed.
std::string ModelFingerprint(std::string_view config, const std::vector<Tensor>& tensors);

}  // namespace baton
