// Memory that processes of one host share: a region of ours, and a peer's region mapped into this process.
//
// A region is a memfd: memory behind a descriptor, with no name in any file system. So no way of dying leaves anything
// behind, and the size of /dev/shm does not matter. A peer opens the descriptor through /proc/<pid>/fd; the kernel lets
// processes of the same user and pid namespace do that. UCX's own shared memory fills a named file before it removes
// the name: a process killed meanwhile leaves the file, with all its memory, until somebody deletes it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {

// Owns one mapping and unmaps it when destroyed. Moves leave the source empty.
class Mapping {
 public:
  // Maps `bytes` of `fd`, shared and writable. RESOURCE_EXHAUSTED names the bytes.
  static absl::StatusOr<Mapping> Map(int fd, size_t bytes);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Mapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// A region of this process, zeroed. The kernel makes its memory as it is first touched.
class SharedRegion {
 public:
  // RESOURCE_EXHAUSTED names the bytes.
  static absl::StatusOr<SharedRegion> Allocate(size_t bytes);

  TransportMemory memory() const { return {.data = mapping_.data(), .bytes = mapping_.bytes()}; }
  // Where peers find the region.
  RegionOffer offer() const { return offer_; }

 private:
  SharedRegion(FileDescriptor fd, Mapping mapping, const RegionOffer& offer)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), offer_(offer) {}
  FileDescriptor fd_;  // stays open for peers
  Mapping mapping_;
  RegionOffer offer_;
};

// A peer's region. A put is done when Put returns, also while the peer is stopped or dead. I/O thread only.
class PeerRegion {
 public:
  // FAILED_PRECONDITION, with the reason, if this process may not open the region of process `pid` or finds other
  // memory there.
  static absl::StatusOr<PeerRegion> Map(pid_t pid, const RegionOffer& offer, size_t bytes);

  // The range lies within the region.
  void Put(uint64_t offset, const std::byte* local, size_t bytes);

  // Maps a slice of the region ahead of use, if its owner has taken that memory: otherwise the first put to each
  // machine page costs a page fault. False when nothing is left to do.
  bool Prefault();

 private:
  explicit PeerRegion(Mapping mapping) : mapping_(std::move(mapping)) {}
  Mapping mapping_;
  size_t prefaulted_ = 0;
};

}  // namespace baton
