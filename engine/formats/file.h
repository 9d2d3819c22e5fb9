// SPDX-License-Identifier: Apache-2.0
// Read access to the files of a model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/mapping.h"

namespace baton {

// A regular file, mapped read-only. Owns the mapping: bytes() is valid while the MappedFile lives. Immutable, so
// thread-safe. If the file shrinks while it is mapped, reading bytes() raises SIGBUS.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, ... by errno. INVALID_ARGUMENT when `path` is not a regular file.
  static absl::StatusOr<MappedFile> Open(const std::filesystem::path& path);
  std::span<const std::byte> bytes() const { return {mapping_.data(), mapping_.bytes()}; }

 private:
  explicit MappedFile(Mapping mapping) : mapping_(std::move(mapping)) {}

  Mapping mapping_;  // empty for an empty file
};

// Returns the resident memory of `mapped` to the system. The next read loads from the file again. `mapped` must be part
// of a MappedFile: in anonymous memory the content would be lost.
void ReleaseMappedPages(std::span<const std::byte> mapped);

// Reads the whole file. RESOURCE_EXHAUSTED, naming both sizes, when the file has more than max_bytes.
absl::StatusOr<std::string> ReadTextFile(const std::filesystem::path& path, size_t max_bytes);

}  // namespace baton
