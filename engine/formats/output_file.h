// SPDX-License-Identifier: Apache-2.0
// An OutputFile is written under a temporary name in the target's folder, and Finish renames it. A reader therefore
// never sees an incomplete file under the target's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// Not thread-safe. The destructor deletes the temporary file unless Finish succeeded.
class OutputFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, ... by errno. The error names the path.
  static absl::StatusOr<OutputFile> Create(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::exchange(other.fd_, -1)),
        bytes_(other.bytes_) {}
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Appends all of `bytes`. RESOURCE_EXHAUSTED when the disk is full.
  absl::Status Write(std::span<const std::byte> bytes);
  absl::Status Write(std::string_view text) { return Write(std::as_bytes(std::span(text))); }
  // Replaces the target with the written file. No Write may follow.
  absl::Status Finish();

  uint64_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty after Finish or a move
  int fd_;
  uint64_t bytes_ = 0;  // written so far
};

}  // namespace baton
