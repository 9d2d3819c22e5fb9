// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "common/file_descriptor.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

absl::Status SystemError(int error, const std::filesystem::path& path, std::string_view what) {
  return absl::ErrnoToStatus(error, Concat(path.string(), ": ", what));
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would block before S_ISREG can refuse the pipe.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return SystemError(errno, path, "cannot be opened");
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return SystemError(errno, path, "cannot be examined");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(Concat(path.string(), ": expected a regular file"));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(Mapping());
  Mapping mapping = Mapping::Map(size, PROT_READ, MAP_PRIVATE, file.get());
  if (mapping.data() == nullptr) return SystemError(errno, path, Concat("cannot be mapped, ", size, " bytes"));
  return MappedFile(std::move(mapping));
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
