// A file that is there whole or not at all: written under a temporary name beside it and renamed by Finish.
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

// Not thread-safe. Without Finish the destructor removes what was written.
class OutputFile {
 public:
  // As the system says (NOT_FOUND, PERMISSION_DENIED, ...), naming the path.
  static absl::StatusOr<OutputFile> Create(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::exchange(other.fd_, -1)),
        bytes_(other.bytes_) {}
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Appends all of it, or fails (a full disk is RESOURCE_EXHAUSTED).
  absl::Status Write(std::span<const std::byte> bytes);
  absl::Status Write(std::string_view text) { return Write(std::as_bytes(std::span(text))); }
  // Puts the file in place of what was there. After it the file takes no more.
  absl::Status Finish();

  uint64_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty when there is nothing to remove
  int fd_;
  uint64_t bytes_ = 0;  // written so far
};

}  // namespace baton
