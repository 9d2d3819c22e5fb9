// SPDX-License-Identifier: Apache-2.0
// Removes shared memory that a dead worker left behind.
//
// Baton 0.1 had UCX allocate the KV pool: a file in /dev/shm that UCX filled before it removed the name. A worker
// killed meanwhile left the file, whose memory is lost to the machine until the file is deleted. Pools are
// memfds now (kvtransfer/ucx/shared_region.h) and leave nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace baton {

struct OrphanSearch {
  std::string folder = "/dev/shm";
  std::string proc = "/proc";
  absl::Duration min_age = absl::Minutes(1);  // younger files may belong to a process that this one cannot see
};

struct OrphanedFile {
  std::string path;
  uint64_t bytes = 0;
};

// Removes the files of UCX's name that belong to this user and that no process has open or mapped. Returns them.
std::vector<OrphanedFile> RemoveOrphanedMemory(const OrphanSearch& search = {});

}  // namespace baton
