// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton {
namespace {

absl::Status NoMemory(size_t bytes, const char* call) {
  return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes of shared memory: ", call, ": ",
                                                   std::system_category().message(errno)));
}

absl::StatusOr<Mapping> MapShared(const FileDescriptor& fd, size_t bytes) {
  Mapping mapping = Mapping::Map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get());
  if (mapping.data() == nullptr) return NoMemory(bytes, "mmap");
  return mapping;
}

}  // namespace

absl::StatusOr<SharedRegion> SharedRegion::Allocate(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("cannot allocate a region of 0 bytes, expected at least 1");
  FileDescriptor fd(memfd_create("baton-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return NoMemory(bytes, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return NoMemory(bytes, "ftruncate");
  // Seals the size: if a peer shrank the region, the next access here would raise SIGBUS.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return NoMemory(bytes, "fcntl");
  BATON_ASSIGN_OR_RETURN(Mapping mapping, MapShared(fd, bytes));
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return NoMemory(bytes, "fstat");
  const RegionOffer offer{.fd = static_cast<uint64_t>(fd.get()), .device = info.st_dev, .inode = info.st_ino};
  return SharedRegion(std::move(fd), std::move(mapping), offer);
}

absl::StatusOr<PeerRegion> PeerRegion::Map(pid_t pid, const RegionOffer& offer, size_t bytes) {
  const std::string path = absl::StrCat("/proc/", pid, "/fd/", offer.fd);
  const FileDescriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open the peer's memory ", path, ": ", std::system_category().message(errno)));
  }
  // The process may have ended and its pid may be reused. The inode proves that the memory is the peer's.
  struct stat info{};
  const bool is_offered = fstat(fd.get(), &info) == 0 && info.st_dev == offer.device && info.st_ino == offer.inode &&
                          static_cast<uint64_t>(info.st_size) == bytes;
  if (!is_offered) return absl::FailedPreconditionError(absl::StrCat(path, " is not the memory that the peer offered"));
  BATON_ASSIGN_OR_RETURN(Mapping mapping, MapShared(fd, bytes));
  return PeerRegion(std::move(mapping));
}

void PeerRegion::Put(uint64_t offset, const std::byte* local, size_t bytes) {
  std::memcpy(mapping_.data() + offset, local, bytes);
}

bool PeerRegion::Prefault() {
  constexpr size_t kSlice = 4 << 20;  // well under a millisecond
  if (prefaulted_ >= mapping_.bytes()) return false;
  const size_t bytes = std::min(kSlice, mapping_.bytes() - prefaulted_);
  std::byte* const slice = mapping_.data() + prefaulted_;
  const auto machine_page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes + machine_page - 1) / machine_page);
  const bool all_resident =
      mincore(slice, bytes, resident.data()) == 0 &&
      std::all_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; });
  // If the kernel lacks MADV_POPULATE_WRITE, or the owner has not touched the memory, each put maps its pages.
  const bool done = all_resident && madvise(slice, bytes, MADV_POPULATE_WRITE) == 0;
  prefaulted_ = done ? prefaulted_ + bytes : mapping_.bytes();
  return true;
}

}  // namespace baton
