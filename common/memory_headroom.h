// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take: what the machine has left, and what its memory cgroup allows.
//
// Values are those of the moment: other processes take memory, too. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace baton {

struct MemoryHeadroom {
  std::optional<uint64_t> machine_bytes;  // MemAvailable; none if the kernel does not say
  std::optional<uint64_t> cgroup_bytes;   // below the tightest limit on the way to the root; none: no limit

  // OK if `bytes` fit. RESOURCE_EXHAUSTED names `bytes` and both bounds.
  absl::Status Check(uint64_t bytes) const;
};

// Reads /proc/meminfo, /proc/self/cgroup and the memory controller of cgroup v1 or v2. Memory of a cgroup that the
// kernel can reclaim, its file cache, counts as left. `root` replaces "/" in tests.
MemoryHeadroom ReadMemoryHeadroom(const std::string& root = "");

}  // namespace baton
