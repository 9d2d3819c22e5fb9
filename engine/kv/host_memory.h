// Anonymous memory of this process, zeroed, page-aligned, mapped rather than taken from the heap: failing to get it is
// an error, not an exception, and giving it back returns it to the system at once.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace baton {

// Sole owner. Moves leave the source empty.
class HostMemory {
 public:
  // RESOURCE_EXHAUSTED names the bytes. With `huge_pages` asks the system for large pages where it has them, which
  // suits memory that will be used in full.
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
