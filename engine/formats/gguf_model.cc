// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf_model.h"

#include <iterator>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/gguf_fields.h"

namespace baton {
namespace {

constexpr int64_t kMaxParts = 1024;

absl::StatusOr<GgufFile> OpenPart(const std::filesystem::path& path, std::vector<MappedFile>& files) {
  BATON_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  BATON_ASSIGN_OR_RETURN(GgufFile file, ParseGguf(mapped.bytes(), path.string()));
  files.push_back(std::move(mapped));
  return file;
}

struct Split {
  int64_t part = 0;  // from 0
  int64_t parts = 1;
};

absl::StatusOr<Split> ReadSplit(const GgufMetadata& metadata, const std::string& origin) {
  Split split;
  GgufFields fields(metadata, origin);
  fields.Int("split.count", 0, kMaxParts, split.parts).Int("split.no", 0, kMaxParts, split.part);
  BATON_RETURN_IF_ERROR(fields.status());
  return split;
}

std::string PartSuffix(int64_t part, int64_t parts) { return absl::StrFormat("-%05d-of-%05d.gguf", part + 1, parts); }

absl::Status AddParts(const std::filesystem::path& first, int64_t parts, GgufModel& model) {
  std::string stem = first.string();
  const std::string suffix = PartSuffix(0, parts);
  if (!stem.ends_with(suffix)) {
    return absl::InvalidArgumentError(
        Concat(model.origin, ": split.count: expected the first of ", parts, " parts to be named ...", suffix));
  }
  stem.resize(stem.size() - suffix.size());
  for (int64_t part = 1; part < parts; ++part) {
    const std::string path = stem + PartSuffix(part, parts);
    BATON_ASSIGN_OR_RETURN(GgufFile file, OpenPart(path, model.files));
    BATON_ASSIGN_OR_RETURN(const Split split, ReadSplit(file.metadata, path));
    if (split.part != part || split.parts != parts) {
      return absl::InvalidArgumentError(Concat(path, ": split.no: expected part ", part, " of ", parts,
                                               " counted from 0, got ", split.part, " of ", split.parts));
    }
    std::move(file.tensors.begin(), file.tensors.end(), std::back_inserter(model.tensors));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const GgufModel& model) {
  std::set<std::string_view> names;
  for (const Tensor& tensor : model.tensors) {
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(Concat(model.origin, ": tensor ", tensor.name, " is in more than one part"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsGgufPath(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ||
         (path.extension() == ".gguf" && !std::filesystem::is_directory(path, ignored));
}

absl::StatusOr<GgufModel> OpenGgufModel(const std::filesystem::path& path) {
  GgufModel model;
  model.origin = path.string();
  BATON_ASSIGN_OR_RETURN(GgufFile file, OpenPart(path, model.files));
  model.metadata = std::move(file.metadata);
  model.tensors = std::move(file.tensors);
  BATON_ASSIGN_OR_RETURN(const Split split, ReadSplit(model.metadata, model.origin));
  if (split.part != 0) {
    return absl::InvalidArgumentError(Concat(model.origin, ": split.no: expected the first of the ", split.parts,
                                             " parts of a split model, got part ", split.part, " counted from 0"));
  }
  if (split.parts > 1) BATON_RETURN_IF_ERROR(AddParts(path, split.parts, model));
  BATON_RETURN_IF_ERROR(CheckNames(model));
  return model;
}

}  // namespace baton
