// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "common/strings.h"

namespace baton {
namespace {

absl::Status CannotBe(std::string_view what, const std::filesystem::path& path, int error) {
  return absl::ErrnoToStatus(error, Concat(path.string(), ": cannot be ", what));
}

}  // namespace

absl::StatusOr<OutputFile> OutputFile::Create(const std::filesystem::path& path) {
  // rename() needs the same file system, hence the same folder. The process id keeps two writers apart.
  std::filesystem::path temporary = path;
  temporary += Concat(".", getpid(), ".part");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return CannotBe("created", path, errno);
  return OutputFile(path, std::move(temporary), fd);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status OutputFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotBe("written", path_, errno);
    bytes = bytes.subspan(written);
    bytes_ += written;
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  // Some file systems report a full disk only on close.
  if (close(std::exchange(fd_, -1)) != 0) return CannotBe("written", path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return CannotBe("replaced", path_, errno);
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace baton
