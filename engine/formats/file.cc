// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

absl::Status SystemError(int error, const std::filesystem::path& path, std::string_view what) {
  return absl::ErrnoToStatus(error, Concat(path.string(), ": ", what));
}

// Closes the descriptor at the end of a scope; a mapping outlives the descriptor.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would block before S_ISREG can refuse the pipe.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return SystemError(errno, path, "cannot be opened");
  struct stat info = {};
  if (fstat(file.fd, &info) != 0) return SystemError(errno, path, "cannot be examined");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(Concat(path.string(), ": expected a regular file"));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile({});
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return SystemError(errno, path, Concat("cannot be mapped, ", size, " bytes"));
  return MappedFile({static_cast<const std::byte*>(data), size});
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void MappedFile::Unmap() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

void ReleaseMappedPages(std::span<const std::byte> mapped) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(mapped.data());
  const size_t before_page = (page - address % page) % page;
  if (mapped.size() < before_page + page) return;
  const size_t bytes = (mapped.size() - before_page) / page * page;
  // A failure only costs memory, so the result is ignored.
  static_cast<void>(madvise(const_cast<std::byte*>(mapped.data()) + before_page, bytes, MADV_DONTNEED));
}

absl::StatusOr<std::string> ReadTextFile(const std::filesystem::path& path, size_t max_bytes) {
  BATON_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    return absl::ResourceExhaustedError(
        Concat(path.string(), ": ", bytes.size(), " bytes, expected at most ", max_bytes));
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace baton
