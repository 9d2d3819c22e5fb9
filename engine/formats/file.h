// Files of a model folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

// A regular file, mapped read-only. Owns the mapping: bytes() are valid while it lives. Immutable, so thread-safe. The
// file must not shrink meanwhile.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, ... as the system says; INVALID_ARGUMENT when it is not a regular file.
  static absl::StatusOr<MappedFile> Open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile() { Unmap(); }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void Unmap();

  std::span<const std::byte> bytes_;
};

// Gives the memory behind a part of a mapped file back until somebody reads it again. Other memory would be lost.
void ReleaseMappedPages(std::span<const std::byte> mapped);

// The whole file. Longer than max_bytes: RESOURCE_EXHAUSTED with both sizes.
absl::StatusOr<std::string> ReadTextFile(const std::filesystem::path& path, size_t max_bytes);

}  // namespace baton
