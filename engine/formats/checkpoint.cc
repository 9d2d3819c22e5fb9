// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/checkpoint.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_model.h"

namespace baton {
namespace {

constexpr size_t kMaxIndexBytes = size_t{16} << 20;
constexpr size_t kMaxFiles = 1024;

bool ByName(const Tensor& a, const Tensor& b) { return a.name < b.name; }

}  // namespace

absl::Status Checkpoint::AddFile(const std::filesystem::path& path) {
  BATON_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  BATON_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, ParseSafetensors(file.bytes(), path.string()));
  files_.push_back(std::move(file));
  std::move(tensors.begin(), tensors.end(), std::back_inserter(tensors_));
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> Checkpoint::OpenFolder(const std::filesystem::path& folder) {
  Checkpoint checkpoint;
  const std::filesystem::path single = folder / "model.safetensors";
  const std::filesystem::path index = folder / "model.safetensors.index.json";
  std::map<std::string, std::string> file_of;
  std::error_code ignored;
  if (std::filesystem::exists(single, ignored) || !std::filesystem::exists(index, ignored)) {
    checkpoint.origin_ = single.string();
    BATON_RETURN_IF_ERROR(checkpoint.AddFile(single));
  } else {
    checkpoint.origin_ = index.string();
    BATON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(index, kMaxIndexBytes));
    BATON_ASSIGN_OR_RETURN(file_of, ParseSafetensorsIndex(text, checkpoint.origin_));
    std::set<std::string> files;
    for (const auto& [name, file] : file_of) files.insert(file);
    if (files.size() > kMaxFiles) {
      return absl::InvalidArgumentError(
          Concat(checkpoint.origin_, ": ", files.size(), " files, expected at most ", kMaxFiles));
    }
    for (const std::string& file : files) BATON_RETURN_IF_ERROR(checkpoint.AddFile(folder / file));
  }

  BATON_RETURN_IF_ERROR(checkpoint.SortTensors());
  for (const auto& [name, file] : file_of) {
    if (checkpoint.Find(name) == nullptr) {
      return absl::InvalidArgumentError(
          Concat(checkpoint.origin_, ": tensor ", name, " is not in ", file, ", where weight_map expects it"));
    }
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> Checkpoint::OpenGguf(const std::filesystem::path& path) {
  BATON_ASSIGN_OR_RETURN(GgufModel model, OpenGgufModel(path));
  Checkpoint checkpoint;
  checkpoint.origin_ = model.origin;
  checkpoint.tensors_ = GgufTensors(model);
  checkpoint.files_ = std::move(model.files);
  BATON_RETURN_IF_ERROR(checkpoint.SortTensors());
  return checkpoint;
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::filesystem::path& model) {
  return IsGgufPath(model) ? OpenGguf(model) : OpenFolder(model);
}

absl::Status Checkpoint::SortTensors() {
  std::sort(tensors_.begin(), tensors_.end(), ByName);
  const auto duplicate = std::adjacent_find(tensors_.begin(), tensors_.end(),
                                            [](const Tensor& a, const Tensor& b) { return a.name == b.name; });
  if (duplicate == tensors_.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(origin_, ": tensor ", duplicate->name, ": expected one tensor, got several"));
}

const Tensor* Checkpoint::Find(std::string_view name) const {
  const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                      [](const Tensor& tensor, std::string_view n) { return tensor.name < n; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

void Checkpoint::ReleasePages() const {
  for (const Tensor& tensor : tensors_) ReleaseMappedPages(tensor.data);
}

uint64_t Checkpoint::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors_) bytes += tensor.data.size();
  return bytes;
}

}  // namespace baton
