// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton {

absl::StatusOr<HostMemory> HostMemory::Allocate(size_t bytes, bool huge_pages) {
  if (bytes == 0) return HostMemory();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes of memory: ", std::system_category().message(errno)));
  }
  // Huge pages only make access faster, so a failure is ignored.
  if (huge_pages) madvise(data, bytes, MADV_HUGEPAGE);
  return HostMemory(data, bytes);
}

HostMemory::~HostMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace baton
