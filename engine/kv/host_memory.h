// SPDX-License-Identifier: Apache-2.0
// Anonymous memory of this process: zeroed and page-aligned. A mapping, not heap memory: a failed allocation is a
// Status, not an exception, and the destructor returns the memory to the system at once.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace baton {

// Owns the mapping; movable. A moved-from object is empty. Not thread-safe.
class HostMemory {
 public:
  // RESOURCE_EXHAUSTED names the bytes. With `huge_pages`, asks the kernel for huge pages: for memory that will be used
  // in full.
  static absl::StatusOr<HostMemory> Allocate(size_t bytes, bool huge_pages = false);

  HostMemory() = default;
  HostMemory(HostMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostMemory();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  HostMemory(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace baton
