// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton {

absl::StatusOr<Mapping> AllocateHostMemory(size_t bytes, bool huge_pages) {
  if (bytes == 0) return Mapping();
  Mapping memory = Mapping::Map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (memory.data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes of memory: ", std::system_category().message(errno)));
  }
  // Huge pages only make access faster, so a failure is ignored.
  if (huge_pages) madvise(memory.data(), bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace baton
