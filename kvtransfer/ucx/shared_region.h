// SPDX-License-Identifier: Apache-2.0
// Memory shared by processes of one host: a region of this process, and a peer's region mapped into this process.
//
// A region is a memfd: memory behind a descriptor, without a name in any file system. No kind of death leaves memory
// behind, and the size of /dev/shm does not matter. A peer opens the descriptor through /proc/<pid>/fd. The kernel
// permits that to processes of the same user and pid namespace.
//
// Why not UCX's shared memory: UCX fills a named file before it removes the name. A process killed in between leaves
// the file with all its memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/mapping.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {

// A zeroed region of this process. The kernel provides memory on the first access to each page.
class SharedRegion {
 public:
  // RESOURCE_EXHAUSTED names the bytes.
  static absl::StatusOr<SharedRegion> Allocate(size_t bytes);

  TransportMemory memory() const { return {.data = mapping_.data(), .bytes = mapping_.bytes()}; }
  // Tells peers where the region is.
  RegionOffer offer() const { return offer_; }

 private:
  SharedRegion(FileDescriptor fd, Mapping mapping, const RegionOffer& offer)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), offer_(offer) {}
  FileDescriptor fd_;  // stays open, because peers open it through /proc
  Mapping mapping_;
  RegionOffer offer_;
};

// A peer's region. A put is complete when Put returns, even if the peer is stopped or dead. I/O thread only.
class PeerRegion {
 public:
  // Maps the offered region of process `pid`. FAILED_PRECONDITION gives the reason: this process may not open the
  // memory, or the memory is not the offered region.
  static absl::StatusOr<PeerRegion> Map(pid_t pid, const RegionOffer& offer, size_t bytes);

  // Copies `bytes` bytes to `offset`. The range must lie within the region.
  void Put(uint64_t offset, const std::byte* local, size_t bytes);

  // Maps the next slice of the region ahead of use, if the owner has backed it with memory. Otherwise the first put to
  // each page costs a page fault. Returns false when nothing is left to do.
  bool Prefault();

 private:
  explicit PeerRegion(Mapping mapping) : mapping_(std::move(mapping)) {}
  Mapping mapping_;
  size_t prefaulted_ = 0;
};

}  // namespace baton
