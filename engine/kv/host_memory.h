// SPDX-License-Identifier: Apache-2.0
// Anonymous memory of this process: zeroed and page-aligned. A mapping, not heap memory: a failed allocation is a
// Status, not an exception, and the destructor returns the memory to the system at once.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/mapping.h"

namespace baton {

// RESOURCE_EXHAUSTED names the bytes. With `huge_pages`, asks the kernel for huge pages: for memory that will be used
// in full.
absl::StatusOr<Mapping> AllocateHostMemory(size_t bytes, bool huge_pages = false);

}  // namespace baton
